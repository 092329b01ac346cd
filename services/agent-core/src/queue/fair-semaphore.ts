// How many turns run at the same time. People's turns and sub-agents have separate slots, so that nobody waits for
// another person's sub-agents. Each pool serves the earliest input first.
export class FairSemaphore {
  #free: number;
  /** Sorted by `came`, earliest first. */
  readonly #waiting: { came: string; granted: () => void }[] = [];

  constructor(size: number) {
    this.#free = size;
  }

  /**
   * Resolves with the function that releases the slot. `came`: sort key of the input's arrival, which may differ from
   * the order of these calls. Rejects with the signal's reason when aborted while waiting.
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

  /** The slot goes to the first in the queue. */
  #release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next.granted();
  }
}

/** A turn's slot, which other turns use while this turn waits for people. */
export class Permit {
  readonly #slots: FairSemaphore;
  readonly #came: string;
  #release: (() => void) | undefined;

  /** `came`: as for `Slots.take`. Does not take the slot yet. */
  constructor(slots: FairSemaphore, enqueuedAt: string) {
    this.#slots = slots;
    this.#came = enqueuedAt;
  }

  /** Releases the slot if it is held. */
  release(): void {
    this.#release?.();
    this.#release = undefined;
  }

  /** Resolves when the slot is held. Rejects with the signal's reason when aborted while waiting. */
  async acquire(signal: AbortSignal): Promise<void> {
    this.#release ??= await this.#slots.take(this.#came, signal);
  }
}
