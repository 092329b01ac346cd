// The tools there are, as the tool-runners tell: asked once, kept, and asked again from time to time. A turn uses one answer
// from its beginning to its end.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { toolCatalog, type ToolDescriptor } from "@parley/contracts";

const refreshMs = 60_000;
/** How long a turn waits when no tool-runner has answered yet. */
const firstAnswerMs = 5_000;

export class ToolCatalog {
  readonly #bus: Bus;
  readonly #log: Logger;
  #tools: ToolDescriptor[] | undefined;
  #asking: Promise<void> | undefined;
  #askedAt = 0;

  constructor(bus: Bus, log: Logger) {
    this.#bus = bus;
    this.#log = log;
  }

  /** Sorted by name; none when no tool-runner is there. */
  async tools(): Promise<ToolDescriptor[]> {
    if (this.#tools === undefined) await this.refresh();
    else if (performance.now() - this.#askedAt > refreshMs) void this.refresh();
    return this.#tools ?? [];
  }

  async refresh(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    await this.#asking;
  }

  async #ask(): Promise<void> {
    this.#askedAt = performance.now();
    try {
      const { tools } = await this.#bus.request(toolCatalog, {}, { timeoutMs: firstAnswerMs });
      this.#tools = tools.sort((a, b) => (a.name < b.name ? -1 : 1));
    } catch (error) {
      this.#log.warn({ err: error }, "no tool-runner answers: the agent works without tools until one does");
    }
  }
}
