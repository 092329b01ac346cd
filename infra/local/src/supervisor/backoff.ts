// The delay before a restart: none at first, then 100 ms, 200 ms, … 5 s. A long run resets it.

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;
/** A run of this length resets the delay. */
const GOOD_LIFE_MS = 10_000;

export class Backoff {
  #deaths = 0;

  /** The delay before the next start after a run of `livedMs`, in milliseconds. */
  nextDelayMs(livedMs: number): number {
    if (livedMs >= GOOD_LIFE_MS) this.#deaths = 0;
    const delayMs = this.#deaths === 0 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (this.#deaths - 1), MAX_DELAY_MS);
    this.#deaths += 1;
    return delayMs;
  }
}
