// Limits the rate of outgoing lines: a burst, then one per interval. Servers disconnect clients that send faster.

export interface Pace {
  burst: number;
  everyMs: number;
}

/** A reservation for several lines, each at its time. */
export interface Reservation {
  /** Resolves when the next line may be sent; false when `signal` aborts first. */
  next(signal: AbortSignal): Promise<boolean>;
}

export class TokenBucket {
  readonly #pace: Pace;
  /** When the next line may be sent after the burst is used up. */
  #freeAt = 0;

  constructor(pace: Pace) {
    this.#pace = pace;
  }

  /** Reserves `count` lines after all earlier reservations. Returns the wait when the last line would be more than `withinMs` away. */
  reserve(count: number, withinMs: number): Reservation | { waitMs: number } {
    const { burst, everyMs } = this.#pace;
    const now = performance.now();
    const free = Math.max(this.#freeAt, now - burst * everyMs);
    const tooLateMs = free + count * everyMs - now - withinMs;
    if (tooLateMs > 0) return { waitMs: Math.ceil(tooLateMs) };
    this.#freeAt = free + count * everyMs;
    let taken = 0;
    return {
      next: (signal) => {
        taken += 1;
        return untilTime(free + taken * everyMs, signal);
      },
    };
  }
}

async function untilTime(atMs: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return false;
  const waitMs = atMs - performance.now();
  if (waitMs <= 0) return true;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(true), waitMs);
  const giveUp = (): void => resolve(false);
  signal.addEventListener("abort", giveUp, { once: true });
  const came = await promise;
  clearTimeout(timer);
  signal.removeEventListener("abort", giveUp);
  return came;
}
