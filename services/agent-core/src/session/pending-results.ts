// Results of a round of tools that no commit of the turn contains yet.
import type { InlineSettlement, ToolResult } from "@parley/contracts";

export class PendingToolResults {
  /** In call order; they form the next message. */
  results: ToolResult[] = [];
  /** Results that hooks changed after their settlement. */
  #rewritten: { n: number; result: ToolResult }[] = [];
  /** Results that are not settled in the store. */
  #settled: InlineSettlement = [];

  rewrite(n: number, result: ToolResult): void {
    this.#rewritten.push({ n, result });
  }

  keep(n: number, state: "done" | "failed", result: ToolResult): void {
    this.#settled.push({ n, state, result });
  }

  /** As fields of the turn's requests to the store. */
  get fields(): { settled?: InlineSettlement; rewritten?: { n: number; result: ToolResult }[] } {
    return {
      ...(this.#settled.length === 0 ? {} : { settled: this.#settled }),
      ...(this.#rewritten.length === 0 ? {} : { rewritten: this.#rewritten }),
    };
  }

  get settled(): InlineSettlement {
    return this.#settled;
  }

  /** The store has committed everything. */
  written(): void {
    this.results = [];
    this.#rewritten = [];
    this.#settled = [];
  }

  /** The store has settled the results; the rest still waits for a commit. */
  told(): void {
    this.#settled = [];
  }
}
