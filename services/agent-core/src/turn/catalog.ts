// The tools there are, as the tool-runners tell: asked once, kept, and asked again from time to time. A turn uses one answer
// from its beginning to its end.
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { toolCatalog, type Containment, type McpServerStatus, type ToolDescriptor } from "@parley/contracts";

const refreshMs = 60_000;
/** How long a turn waits when no tool-runner has answered yet. */
const firstAnswerMs = 5_000;
/** How long turns wait for MCP servers that are started for the first time, counted from the first answer that names them. */
const firstStartMs = 3_000;

export interface Catalog {
  /** Sorted by name. */
  tools: ToolDescriptor[];
  /** What separates commands of `exec` from the service. */
  containment: Containment;
}

const noCatalog: Catalog = { tools: [], containment: "none" };

export class ToolCatalog {
  readonly #bus: Pick<Bus, "request">;
  readonly #log: Pick<Logger, "warn">;
  #catalog: Catalog | undefined;
  #asking: Promise<void> | undefined;
  #again = false;
  #askedAt = 0;
  /** Servers are being started: turns wait for them until then. */
  #startingUntil: number | undefined;
  #answered = Promise.withResolvers<undefined>();

  constructor(bus: Pick<Bus, "request">, log: Pick<Logger, "warn">) {
    this.#bus = bus;
    this.#log = log;
  }

  /** Without tools when no tool-runner is there; without those of an MCP server that does not come up within a moment. */
  async tools(): Promise<Catalog> {
    if (this.#catalog === undefined) await this.refresh();
    else if (performance.now() - this.#askedAt > refreshMs) void this.refresh();
    await this.#serversStarted();
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
      const { tools, contained, containment = contained ? "container" : "none", mcp = [] } = answer;
      this.#catalog = { tools: tools.sort((a, b) => (a.name < b.name ? -1 : 1)), containment };
      // One deadline for all of them: a server that hangs, or fails again and again, holds no later turn up.
      const isStarting = mcp.some(isFirstStart);
      this.#startingUntil = isStarting ? (this.#startingUntil ?? performance.now() + firstStartMs) : undefined;
      this.#answered.resolve(undefined);
      this.#answered = Promise.withResolvers();
    } catch (error) {
      this.#log.warn({ err: error }, "no tool-runner answers: the agent works without tools until one does");
    }
  }

  /** A change of a server is announced, and brings a new answer. */
  async #serversStarted(): Promise<void> {
    for (;;) {
      const leftMs = (this.#startingUntil ?? 0) - performance.now();
      if (leftMs <= 0) return;
      await Promise.race([this.#answered.promise, delay(leftMs, undefined, { ref: false })]);
    }
  }
}

/** It has not failed yet, and no tool of it is known. */
function isFirstStart({ state, tools, problem }: McpServerStatus): boolean {
  return state === "starting" && tools === 0 && problem === null;
}
