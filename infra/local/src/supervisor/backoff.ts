// When something that died is started again: at once the first time, then after 100 ms, 200 ms, … 5 s; a good life forgives the past.

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;
/** A process that lived this long had a good life. */
const GOOD_LIFE_MS = 10_000;

export class Backoff {
  #deaths = 0;

  /** How long to wait before the next start, after a life of `livedMs`. */
  nextDelayMs(livedMs: number): number {
    if (livedMs >= GOOD_LIFE_MS) this.#deaths = 0;
    const delayMs = this.#deaths === 0 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (this.#deaths - 1), MAX_DELAY_MS);
    this.#deaths += 1;
    return delayMs;
  }
}
