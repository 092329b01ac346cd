// A cached value from a source that may be slow or unavailable: refreshed in the background, with the old value kept on
// failure. Readers wait for a bounded time only.
import { setTimeout as delay } from "node:timers/promises";

export interface CachedValueTimes {
  /** Age at which a value is refreshed. */
  freshMs: number;
  /** Delay before the next attempt after a failure. */
  failedMs: number;
  /** How long a reader waits for the first value. */
  firstWaitMs: number;
  /** How long one load may take. */
  loadMs: number;
}

/** Sizes change rarely, and a reader has a fallback. */
export const cachedValueTimes: CachedValueTimes = {
  freshMs: 300_000,
  failedMs: 30_000,
  firstWaitMs: 2_000,
  loadMs: 10_000,
};

export class CachedValue<T> {
  readonly #load: (signal: AbortSignal) => Promise<T>;
  readonly #times: CachedValueTimes;
  readonly #now: () => number;
  #value: { is: T } | undefined;
  #dueAt = 0;
  #loading: Promise<void> | undefined;

  constructor(
    load: (signal: AbortSignal) => Promise<T>,
    times: CachedValueTimes = cachedValueTimes,
    now: () => number = () => performance.now(),
  ) {
    this.#load = load;
    this.#times = times;
    this.#now = now;
  }

  /**
   * The newest known value; undefined when there is none or none yet. Never throws: the reader has a fallback and
   * reports it.
   */
  async get(): Promise<T | undefined> {
    if (this.#now() >= this.#dueAt) this.#refresh();
    if (this.#value === undefined && this.#loading !== undefined) {
      const waiting = new AbortController();
      const { signal } = waiting;
      // Rejects only when it is aborted below.
      const enough = delay(this.#times.firstWaitMs, undefined, { signal, ref: false }).catch(() => undefined);
      await Promise.race([this.#loading, enough]);
      waiting.abort();
    }
    return this.#value?.is;
  }

  /** Marks the value as outdated: the next read refreshes it and returns the old one until then. */
  invalidate(): void {
    this.#dueAt = 0;
  }

  #refresh(): void {
    this.#loading ??= this.#ask().finally(() => {
      this.#loading = undefined;
    });
  }

  async #ask(): Promise<void> {
    try {
      this.#value = { is: await this.#load(AbortSignal.timeout(this.#times.loadMs)) };
      this.#dueAt = this.#now() + this.#times.freshMs;
    } catch {
      this.#dueAt = this.#now() + this.#times.failedMs;
    }
  }
}
