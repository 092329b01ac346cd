// Money spent per agent tree and per day. A single leader runs all turns, so the sums are kept in memory; the store
// supplies their initial values.
import type { Logger } from "@parley/chassis";
import { briefMs, type LeaderStore } from "../store-client/leader-store.ts";
import { store, type ClaimedTurn, type Cost, type OutputOf } from "@parley/contracts";

type UsageRow = Pick<OutputOf<typeof store.usageReport>["rows"][number], "day" | "cost">;

interface Tree extends Cost {
  turns: number;
}

export class Budgets {
  readonly #trees = new Map<string, Tree>();
  #day = "";
  #dayMicroUsd = 0;

  /** A turn starts or resumes. The tree's sum is the larger of the store's and the one in memory. */
  open({ root, treeCost }: Pick<ClaimedTurn, "root" | "treeCost">): void {
    const tree = this.#trees.get(root.turnId) ?? { micros: 0, unpricedCalls: 0, turns: 0 };
    tree.micros = Math.max(tree.micros, treeCost.micros);
    tree.unpricedCalls = Math.max(tree.unpricedCalls, treeCost.unpricedCalls);
    tree.turns += 1;
    this.#trees.set(root.turnId, tree);
  }

  close({ root }: Pick<ClaimedTurn, "root">): void {
    const tree = this.#trees.get(root.turnId);
    if (tree === undefined) return;
    tree.turns -= 1;
    if (tree.turns === 0) this.#trees.delete(root.turnId);
  }

  /** A cost of a turn; null: no known price, which counts as 0. */
  spend({ root }: Pick<ClaimedTurn, "root">, microUsd: number | null, now = Date.now()): void {
    const tree = this.#trees.get(root.turnId);
    if (tree !== undefined) {
      tree.micros += microUsd ?? 0;
      if (microUsd === null) tree.unpricedCalls += 1;
    }
    this.spendOutsideTurns(microUsd, now);
  }

  /** What the agent tree of an open turn has cost. */
  treeMicroUsd({ root }: Pick<ClaimedTurn, "root">): number {
    return this.#trees.get(root.turnId)?.micros ?? 0;
  }

  /** The cost of an open turn with that of its sub-agents; undefined: they cost nothing, or the turn is itself one of them. */
  costWithSubagents({ root, parent }: Pick<ClaimedTurn, "root" | "parent">, own: Cost): Cost | undefined {
    const tree = this.#trees.get(root.turnId);
    if (parent !== null || tree === undefined) return undefined;
    const { micros, unpricedCalls } = tree;
    return micros > own.micros || unpricedCalls > own.unpricedCalls ? { micros, unpricedCalls } : undefined;
  }

  /** What this day (UTC) has cost. */
  dayMicroUsd(now = Date.now()): number {
    this.#resetOnNewDay(now);
    return this.#dayMicroUsd;
  }

  /** A cost outside of all turns: it counts for the day only. */
  spendOutsideTurns(microUsd: number | null, now = Date.now()): void {
    this.#resetOnNewDay(now);
    this.#dayMicroUsd += microUsd ?? 0;
  }

  /** Adds what `now`'s day had cost before this leader started; rows of other days are ignored. */
  addEarlier(rows: readonly UsageRow[], now: number): void {
    this.#resetOnNewDay(now);
    this.#dayMicroUsd += rows.filter(({ day }) => day === this.#day).reduce((sum, { cost }) => sum + cost.micros, 0);
  }

  /** Loads what the day had cost before this leader started. */
  async load(leaderStore: LeaderStore, log: Logger): Promise<void> {
    this.#resetOnNewDay(Date.now());
    try {
      const { rows } = await leaderStore.request(store.usageReport, { sinceDay: this.#day }, { timeoutMs: briefMs });
      // The day may have changed since the request.
      this.addEarlier(rows, Date.now());
    } catch (error) {
      log.warn({ err: error }, "daily cost not loaded: the daily budget ignores what was spent before this start");
    }
  }

  #resetOnNewDay(now: number): void {
    const day = new Date(now).toISOString().slice(0, 10);
    if (day === this.#day) return;
    this.#day = day;
    this.#dayMicroUsd = 0;
  }
}
