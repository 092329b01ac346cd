// The highest epoch this replica has heard of: whoever speaks with a lower one is no longer the leader.
import { WireError } from "@parley/contracts";

export class EpochGate {
  #highest = 0;

  get highest(): number {
    return this.#highest;
  }

  /** Remembers an epoch that was announced. */
  hear(epoch: number): void {
    this.#highest = Math.max(this.#highest, epoch);
  }

  /** Throws STALE_EPOCH for an epoch that is over. */
  admit(epoch: number): void {
    if (epoch < this.#highest) {
      throw new WireError("STALE_EPOCH", `epoch ${epoch} is over; ${this.#highest} has begun`);
    }
    this.hear(epoch);
  }
}
