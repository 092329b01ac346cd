// Limits how many holders run concurrently. Waiters are served in the order of their keys, then of their requests.

export class FairSemaphore {
  readonly #size: number;
  #held = 0;
  /** Sorted by `key`, lowest first; equal keys in the order of their requests. */
  readonly #waiting: { readonly key: string; readonly grant: () => void }[] = [];

  /** `size`: the number of permits. */
  constructor(size: number) {
    this.#size = size;
  }

  /** Permits in use. */
  get held(): number {
    return this.#held;
  }

  /** Requests that wait for a permit. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Resolves with the function that releases the permit; calling it again has no effect. `key`: requests with a lower key are served
   * first, for example a time of arrival; without keys the order is that of the requests. Rejects with the signal's reason when it
   * aborts before the permit is granted.
   */
  async acquire(signal: AbortSignal, key = ""): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#held < this.#size) this.#held += 1;
    else await this.#wait(key, signal);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      // The permit passes to the next waiter directly, so that no newcomer takes it.
      const next = this.#waiting.shift();
      if (next === undefined) this.#held -= 1;
      else next.grant();
    };
  }

  #wait(key: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        reject(signal.reason as Error);
      };
      const waiter = {
        key,
        grant: () => {
          signal.removeEventListener("abort", abort);
          resolve();
        },
      };
      signal.addEventListener("abort", abort, { once: true });
      const later = this.#waiting.findIndex((each) => each.key > key);
      this.#waiting.splice(later < 0 ? this.#waiting.length : later, 0, waiter);
    });
  }
}

/** One holder's permit, which it can release while it waits for something and acquire again. */
export class Permit {
  readonly #semaphore: FairSemaphore;
  readonly #key: string;
  #release: (() => void) | undefined;

  /** `key`: as for `FairSemaphore.acquire`. Does not acquire the permit. */
  constructor(semaphore: FairSemaphore, key = "") {
    this.#semaphore = semaphore;
    this.#key = key;
  }

  /** Resolves when the permit is held. Rejects with the signal's reason when it aborts before. */
  async acquire(signal: AbortSignal): Promise<void> {
    this.#release ??= await this.#semaphore.acquire(signal, this.#key);
  }

  /** Releases the permit if it is held. */
  release(): void {
    this.#release?.();
    this.#release = undefined;
  }
}
