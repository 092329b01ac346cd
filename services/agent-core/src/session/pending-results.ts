// Results of a round of tools that no commit of the turn contains yet.
import type { InlineSettlement, ToolResult } from "@parley/contracts";

export class PendingToolResults {
  /** In call order; they form the next message. */
  results: ToolResult[] = [];
  /** Results that are not settled in the store. */
  #settled: InlineSettlement = [];

  keep(n: number, state: "done" | "failed", result: ToolResult): void {
    this.#settled.push({ n, state, result });
  }

  /** The store has settled this result. */
  drop(n: number): void {
    this.#settled = this.#settled.filter((each) => each.n !== n);
  }

  /** As a field of the turn's requests to the store. */
  get field(): { settled?: InlineSettlement } {
    return this.#settled.length === 0 ? {} : { settled: this.#settled };
  }

  get settled(): InlineSettlement {
    return this.#settled;
  }

  /** The store has committed everything. */
  written(): void {
    this.results = [];
    this.#settled = [];
  }

  /** The store has settled the results; the rest still waits for a commit. */
  told(): void {
    this.#settled = [];
  }
}
