// What a round of tools has brought that is in no commit of its turn yet.
import type { SettledHere, ToolResult } from "@parley/contracts";

export class Unwritten {
  /** In call order; they are the next message. */
  results: ToolResult[] = [];
  /** Results that hooks have changed after they were settled. */
  #rewritten: { n: number; result: ToolResult }[] = [];
  /** Results that the store has not been told. */
  #settled: SettledHere = [];

  rewrite(n: number, result: ToolResult): void {
    this.#rewritten.push({ n, result });
  }

  keep(n: number, state: "done" | "failed", result: ToolResult): void {
    this.#settled.push({ n, state, result });
  }

  /** As the requests of a turn name them. */
  get fields(): { settled?: SettledHere; rewritten?: { n: number; result: ToolResult }[] } {
    return {
      ...(this.#settled.length === 0 ? {} : { settled: this.#settled }),
      ...(this.#rewritten.length === 0 ? {} : { rewritten: this.#rewritten }),
    };
  }

  get settled(): SettledHere {
    return this.#settled;
  }

  /** The store has them. */
  written(): void {
    this.results = [];
    this.#rewritten = [];
    this.#settled = [];
  }

  /** The store has what it had not been told; the rest waits on. */
  told(): void {
    this.#settled = [];
  }
}
