// Money spent while it is being spent: by each tree of agents, and by the day. One leader runs them all, so memory is enough;
// the store's sums are where it begins.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
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

  /** A turn begins or goes on. What the store knows of its tree counts where memory knows less. */
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

  /** Outside of every turn: nobody's tree, but the day's. */
  spendAlone(micros: number | null, now = Date.now()): void {
    this.#turnDay(now);
    this.#dayMicros += micros ?? 0;
  }

  /** Adds what `now`'s day had cost before this leader began; rows of other days count for nothing. */
  began(rows: readonly UsageRow[], now: number): void {
    this.#turnDay(now);
    this.#dayMicros += rows.filter(({ day }) => day === this.#day).reduce((sum, { cost }) => sum + cost.micros, 0);
  }

  /** Takes in what the day has cost before this leader began. */
  async load(bus: Bus, log: Logger): Promise<void> {
    this.#turnDay(Date.now());
    try {
      const { rows } = await bus.request(store.usageReport, { sinceDay: this.#day });
      // It may be another day than when the store was asked.
      this.began(rows, Date.now());
    } catch (error) {
      log.warn({ err: error }, "the day's cost up to now could not be read: the day's budget begins with what comes");
    }
  }

  #turnDay(now: number): void {
    const day = new Date(now).toISOString().slice(0, 10);
    if (day === this.#day) return;
    this.#day = day;
    this.#dayMicros = 0;
  }
}
