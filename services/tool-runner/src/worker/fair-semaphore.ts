// Limits how many calls run concurrently; the others wait in arrival order. It does not know what a call is.

export class FairSemaphore {
  readonly #places: number;
  #taken = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(places: number) {
    this.#places = places;
  }

  get running(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Waits for a slot; the returned function releases it. Rejects with the signal's reason. */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#taken < this.#places) this.#taken += 1;
    else await this.#turn(signal);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const next = this.#waiting.shift();
      // The slot passes directly to the next waiter, so no newcomer can take it.
      if (next === undefined) this.#taken -= 1;
      else next();
    };
  }

  async #turn(signal: AbortSignal): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const called = () => turn.resolve();
    this.#waiting.push(called);
    const leave = () => {
      const at = this.#waiting.indexOf(called);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      turn.reject(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
    try {
      await turn.promise;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }
}
