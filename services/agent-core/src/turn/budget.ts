// Money spent while it is being spent: by each tree of agents, and by the day. One leader runs them all, so memory is enough;
// the store's sums are where it begins.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { store, type ClaimedTurn } from "@parley/contracts";

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
    const spent = micros ?? 0;
    const tree = this.#trees.get(root.turnId);
    if (tree !== undefined) tree.micros += spent;
    this.#turnDay(now);
    this.#dayMicros += spent;
  }

  treeMicros({ root }: Pick<ClaimedTurn, "root">): number {
    return this.#trees.get(root.turnId)?.micros ?? 0;
  }

  dayMicros(now = Date.now()): number {
    this.#turnDay(now);
    return this.#dayMicros;
  }

  /** Takes in what the day has cost before this leader began. */
  async load(bus: Bus, log: Logger, now = Date.now()): Promise<void> {
    this.#turnDay(now);
    try {
      const { rows } = await bus.request(store.usageReport, { sinceDay: this.#day });
      this.#dayMicros += rows.reduce((sum, row) => sum + row.cost.micros, 0);
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
