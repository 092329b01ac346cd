// How fast lines may leave: a few at once, then one a second. Servers cut off who is faster.

export interface Pace {
  burst: number;
  everyMs: number;
}

export class Pacer {
  readonly #pace: Pace;
  /** When the next line may leave if none of the burst is left. */
  #freeAt = 0;

  constructor(pace: Pace) {
    this.#pace = pace;
  }

  /** Resolves when the caller may write one line; false when `signal` aborted first. Turns come in the order they were asked for. */
  async turn(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    const { burst, everyMs } = this.#pace;
    const now = performance.now();
    const start = Math.max(this.#freeAt, now - burst * everyMs) + everyMs;
    this.#freeAt = start;
    if (start <= now) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(true), start - now);
    const giveUp = (): void => resolve(false);
    signal.addEventListener("abort", giveUp, { once: true });
    const came = await promise;
    clearTimeout(timer);
    signal.removeEventListener("abort", giveUp);
    return came;
  }
}
