// The highest epoch that this replica has seen: a sender with a lower one is no longer the leader.
import { WireError } from "@parley/contracts";

export class EpochGate {
  #highest = 0;

  get highest(): number {
    return this.#highest;
  }

  /** Records an announced epoch. */
  observe(epoch: number): void {
    this.#highest = Math.max(this.#highest, epoch);
  }

  /** Throws STALE_EPOCH when a higher epoch has been seen. */
  admit(epoch: number): void {
    if (epoch < this.#highest) {
      throw new WireError("STALE_EPOCH", `epoch ${epoch} was superseded by epoch ${this.#highest}`);
    }
    this.observe(epoch);
  }
}
