// How many turns think at once. People's turns and sub-agents' have places of their own, so that nobody waits for a sub-agent of
// somebody else; within each, whoever came first is served first.
export class Slots {
  #free: number;
  /** By when they came, the earliest first. */
  readonly #waiting: { came: string; granted: () => void }[] = [];

  constructor(size: number) {
    this.#free = size;
  }

  /**
   * Resolves with the function that gives the place back. `came`: sorts by when what is to be done came in, which need not be the
   * order in which it is asked here. Rejects with the signal's reason when it is aborted while waiting.
   */
  async take(came: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn(came, signal);
    let held = true;
    return () => {
      if (held) this.#release();
      held = false;
    };
  }

  #turn(came: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const aborted = () => {
        this.#waiting.splice(
          this.#waiting.findIndex((each) => each.granted === granted),
          1,
        );
        reject(signal.reason as Error);
      };
      const granted = () => {
        signal.removeEventListener("abort", aborted);
        resolve();
      };
      signal.addEventListener("abort", aborted, { once: true });
      const later = this.#waiting.findIndex((each) => each.came > came);
      this.#waiting.splice(later < 0 ? this.#waiting.length : later, 0, { came, granted });
    });
  }

  /** The place goes to whoever has waited longest. */
  #release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next.granted();
  }
}

/** A turn's place among those that think, which others have while the turn waits for people. */
export class Slot {
  readonly #slots: Slots;
  readonly #came: string;
  #release: (() => void) | undefined;

  /** `came`: as for `Slots.take`. The place is not taken yet. */
  constructor(slots: Slots, came: string) {
    this.#slots = slots;
    this.#came = came;
  }

  /** Gives it to others, where it is held. */
  leave(): void {
    this.#release?.();
    this.#release = undefined;
  }

  /** Resolves when it is held. Rejects with the signal's reason when it has to be waited for and that is aborted. */
  async back(signal: AbortSignal): Promise<void> {
    this.#release ??= await this.#slots.take(this.#came, signal);
  }
}
