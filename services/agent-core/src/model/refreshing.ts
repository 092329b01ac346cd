// A value from somewhere that may be slow or away: kept for a while, then asked for again behind the reader's back. A failure
// keeps the old value. Nobody waits for it longer than agreed.
import { setTimeout as delay } from "node:timers/promises";

export interface RefreshingTimes {
  /** How old a value may become before it is asked for again. */
  freshMs: number;
  /** After a failure, how long until the next try. */
  failedMs: number;
  /** How long a reader waits for the first value. */
  firstWaitMs: number;
  /** How long one load may take. */
  loadMs: number;
}

/** Source: the plan's section on the context window. */
export const refreshingTimes: RefreshingTimes = {
  freshMs: 300_000,
  failedMs: 30_000,
  firstWaitMs: 2_000,
  loadMs: 10_000,
};

export class Refreshing<T> {
  readonly #load: (signal: AbortSignal) => Promise<T>;
  readonly #times: RefreshingTimes;
  readonly #now: () => number;
  #value: { is: T } | undefined;
  #dueAt = 0;
  #loading: Promise<void> | undefined;

  constructor(
    load: (signal: AbortSignal) => Promise<T>,
    times: RefreshingTimes = refreshingTimes,
    now: () => number = () => performance.now(),
  ) {
    this.#load = load;
    this.#times = times;
    this.#now = now;
  }

  /**
   * The newest value that is known; undefined when there is none, or none yet. Never throws: a reader has something else to go
   * by, and it is for the reader to say so.
   */
  async get(): Promise<T | undefined> {
    if (this.#now() >= this.#dueAt) this.#refresh();
    if (this.#value === undefined && this.#loading !== undefined) {
      const waiting = new AbortController();
      const { signal } = waiting;
      // Rejects only when it is called off, below.
      const enough = delay(this.#times.firstWaitMs, undefined, { signal, ref: false }).catch(() => undefined);
      await Promise.race([this.#loading, enough]);
      waiting.abort();
    }
    return this.#value?.is;
  }

  /** The value is doubted: the next reader has it asked for again, and sees the old one until then. */
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
