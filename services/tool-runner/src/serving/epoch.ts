// The highest epoch this replica has heard of: whoever speaks with a lower one is no longer the leader.
import { WireError } from "@parley/contracts";

export class EpochGate {
  #highest = 0;
  #waiting: (() => void)[] = [];

  get highest(): number {
    return this.#highest;
  }

  /** Remembers an epoch that was announced. */
  hear(epoch: number): void {
    if (epoch <= this.#highest) return;
    this.#highest = epoch;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Throws STALE_EPOCH for an epoch that is over. */
  admit(epoch: number): void {
    if (epoch < this.#highest) {
      throw new WireError("STALE_EPOCH", `epoch ${epoch} is over; ${this.#highest} has begun`);
    }
    this.hear(epoch);
  }

  /** Resolves when a higher epoch has been heard; false when the signal came first. */
  async above(epoch: number, signal: AbortSignal): Promise<boolean> {
    while (this.#highest <= epoch) {
      if (signal.aborted) return false;
      const woken = Promise.withResolvers<void>();
      this.#waiting.push(woken.resolve);
      signal.addEventListener("abort", () => woken.resolve(), { once: true });
      await woken.promise;
    }
    return true;
  }
}
