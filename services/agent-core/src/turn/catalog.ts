// The tools there are, as the tool-runners tell: asked once, kept, and asked again from time to time. A turn uses one answer
// from its beginning to its end.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { toolCatalog, type Containment, type ToolDescriptor } from "@parley/contracts";

const refreshMs = 60_000;
/** How long a turn waits when no tool-runner has answered yet. */
const firstAnswerMs = 5_000;

export interface Catalog {
  /** Sorted by name. */
  tools: ToolDescriptor[];
  /** What separates commands of `exec` from the service. */
  containment: Containment;
}

const noCatalog: Catalog = { tools: [], containment: "none" };

export class ToolCatalog {
  readonly #bus: Bus;
  readonly #log: Logger;
  #catalog: Catalog | undefined;
  #asking: Promise<void> | undefined;
  #again = false;
  #askedAt = 0;

  constructor(bus: Bus, log: Logger) {
    this.#bus = bus;
    this.#log = log;
  }

  /** Without tools when no tool-runner is there. */
  async tools(): Promise<Catalog> {
    if (this.#catalog === undefined) await this.refresh();
    else if (performance.now() - this.#askedAt > refreshMs) void this.refresh();
    return this.known();
  }

  /** What was answered last, without waiting. */
  known(): Catalog {
    return this.#catalog ?? noCatalog;
  }

  /** Asks anew. What changes while an answer is on its way need not be in it: then it is asked once more. */
  async refresh(): Promise<void> {
    this.#again = this.#asking !== undefined;
    this.#asking ??= this.#askToTheEnd().finally(() => (this.#asking = undefined));
    await this.#asking;
  }

  async #askToTheEnd(): Promise<void> {
    do {
      this.#again = false;
      await this.#ask();
    } while (this.#again);
  }

  async #ask(): Promise<void> {
    this.#askedAt = performance.now();
    try {
      const answer = await this.#bus.request(toolCatalog, {}, { timeoutMs: firstAnswerMs });
      // A tool-runner of an older version does not say which kind it is: the weaker one is assumed.
      const { tools, contained, containment = contained ? "container" : "none" } = answer;
      this.#catalog = { tools: tools.sort((a, b) => (a.name < b.name ? -1 : 1)), containment };
    } catch (error) {
      this.#log.warn({ err: error }, "no tool-runner answers: the agent works without tools until one does");
    }
  }
}
