// Money spent per agent tree and per day. A single leader runs all turns, so the sums are kept in memory; the store
// supplies their initial values.
import type { Logger } from "@parley/chassis";
import { briefMs, type LeaderStore } from "../store-client/leader-store.ts";
import { store, type ClaimedTurn, type OutputOf } from "@parley/contracts";

type UsageRow = Pick<OutputOf<typeof store.usageReport>["rows"][number], "day" | "cost">;

interface Tree {
  micros: number;
  turns: number;
}

export class Budgets {
  readonly #trees = new Map<string, Tree>();
  #day = "";
  #dayMicros = 0;

  /** A turn starts or resumes. The tree's sum is the larger of the store's and the one in memory. */
  open({ root, treeCost }: Pick<ClaimedTurn, "root" | "treeCost">): void {
    const tree = this.#trees.get(root.turnId) ?? { micros: 0, turns: 0 };
    tree.micros = Math.max(tree.micros, treeCost.micros);
    tree.turns += 1;
    this.#trees.set(root.turnId, tree);
  }

  close({ root }: Pick<ClaimedTurn, "root">): void {
    const tree = this.#trees.get(root.turnId);
    if (tree === undefined) return;
    tree.turns -= 1;
    if (tree.turns === 0) this.#trees.delete(root.turnId);
  }

  spend({ root }: Pick<ClaimedTurn, "root">, micros: number | null, now = Date.now()): void {
    const tree = this.#trees.get(root.turnId);
    if (tree !== undefined) tree.micros += micros ?? 0;
    this.spendAlone(micros, now);
  }

  treeMicros({ root }: Pick<ClaimedTurn, "root">): number {
    return this.#trees.get(root.turnId)?.micros ?? 0;
  }

  dayMicros(now = Date.now()): number {
    this.#turnDay(now);
    return this.#dayMicros;
  }

  /** A cost outside of all turns: it counts for the day only. */
  spendAlone(micros: number | null, now = Date.now()): void {
    this.#turnDay(now);
    this.#dayMicros += micros ?? 0;
  }

  /** Adds what `now`'s day had cost before this leader started; rows of other days are ignored. */
  began(rows: readonly UsageRow[], now: number): void {
    this.#turnDay(now);
    this.#dayMicros += rows.filter(({ day }) => day === this.#day).reduce((sum, { cost }) => sum + cost.micros, 0);
  }

  /** Loads what the day had cost before this leader started. */
  async load(leaderStore: LeaderStore, log: Logger): Promise<void> {
    this.#turnDay(Date.now());
    try {
      const { rows } = await leaderStore.request(store.usageReport, { sinceDay: this.#day }, { timeoutMs: briefMs });
      // The day may have changed since the request.
      this.began(rows, Date.now());
    } catch (error) {
      log.warn({ err: error }, "daily cost not loaded: the daily budget ignores what was spent before this start");
    }
  }

  #turnDay(now: number): void {
    const day = new Date(now).toISOString().slice(0, 10);
    if (day === this.#day) return;
    this.#day = day;
    this.#dayMicros = 0;
  }
}
