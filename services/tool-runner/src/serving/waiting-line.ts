// How many calls run at once; the others wait in the order they came. It does not know what a call is.

export class WaitingLine {
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

  /** Waits for a place; the caller gives it back with the returned function. Rejects with the signal's reason. */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#taken < this.#places) this.#taken += 1;
    else await this.#turn(signal);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const next = this.#waiting.shift();
      // The place goes to the next in line without being free in between.
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
