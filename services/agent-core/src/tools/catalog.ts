// The tool catalog, as reported by the tool-runners: requested once, cached, refreshed periodically. A turn uses one
// catalog from start to end.
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { toolCatalog, type Containment, type McpServerStatus, type ToolDescriptor } from "@parley/contracts";

const refreshMs = 60_000;
/** How long a turn waits for the first answer of a tool-runner. */
const firstAnswerMs = 5_000;
/** How long turns wait for MCP servers that start for the first time, counted from the first answer that lists them. */
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
  /** MCP servers are starting: turns wait for them until this time. */
  #startingUntil: number | undefined;
  #answered = Promise.withResolvers<undefined>();

  constructor(bus: Pick<Bus, "request">, log: Pick<Logger, "warn">) {
    this.#bus = bus;
    this.#log = log;
  }

  /** Without tools when no tool-runner is running; without the tools of an MCP server that does not start in time. */
  async tools(): Promise<Catalog> {
    if (this.#catalog === undefined) await this.refresh();
    else if (performance.now() - this.#askedAt > refreshMs) void this.refresh();
    await this.#serversStarted();
    return this.known();
  }

  /** The last answer, without waiting. */
  known(): Catalog {
    return this.#catalog ?? noCatalog;
  }

  /**
   * Requests the catalog again. Changes during a request may be missing from its answer, so another request follows it.
   */
  async refresh(): Promise<void> {
    this.#again = this.#asking !== undefined;
    this.#asking ??= this.#requestUntilAnswered().finally(() => (this.#asking = undefined));
    await this.#asking;
  }

  async #requestUntilAnswered(): Promise<void> {
    do {
      this.#again = false;
      await this.#ask();
    } while (this.#again);
  }

  async #ask(): Promise<void> {
    this.#askedAt = performance.now();
    try {
      const answer = await this.#bus.request(toolCatalog, {}, { timeoutMs: firstAnswerMs });
      // Tool-runners of older versions do not report the kind; the weaker one is assumed.
      const { tools, contained, containment = contained ? "container" : "none", mcp = [] } = answer;
      this.#catalog = { tools: tools.sort((a, b) => (a.name < b.name ? -1 : 1)), containment };
      // One deadline for all servers: a server that hangs or keeps failing does not delay later turns.
      const isStarting = mcp.some(isFirstStart);
      this.#startingUntil = isStarting ? (this.#startingUntil ?? performance.now() + firstStartMs) : undefined;
      this.#answered.resolve(undefined);
      this.#answered = Promise.withResolvers();
    } catch (error) {
      this.#log.warn(
        { err: error },
        "tool catalog unavailable: no tool-runner responded, turns run without its tools until one does",
      );
    }
  }

  /** A server that changes state announces it, which causes a new answer. */
  async #serversStarted(): Promise<void> {
    for (;;) {
      const leftMs = (this.#startingUntil ?? 0) - performance.now();
      if (leftMs <= 0) return;
      await Promise.race([this.#answered.promise, delay(leftMs, undefined, { ref: false })]);
    }
  }
}

/** The server has not failed yet, and none of its tools is known. */
function isFirstStart({ state, tools, problem }: McpServerStatus): boolean {
  return state === "starting" && tools === 0 && problem === null;
}
