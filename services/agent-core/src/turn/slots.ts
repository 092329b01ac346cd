// How many turns think at once. People's turns and sub-agents' have places of their own, so that nobody waits for a sub-agent of
// somebody else; within each, first come, first served.
export class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(size: number) {
    this.#free = size;
  }

  /** Resolves with the function that gives the place back. Rejects with the signal's reason when it is aborted while waiting. */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn(signal);
    let held = true;
    return () => {
      if (held) this.#release();
      held = false;
    };
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const aborted = () => {
        this.#waiting.splice(this.#waiting.indexOf(granted), 1);
        reject(signal.reason as Error);
      };
      const granted = () => {
        signal.removeEventListener("abort", aborted);
        resolve();
      };
      signal.addEventListener("abort", aborted, { once: true });
      this.#waiting.push(granted);
    });
  }

  /** The place goes to whoever has waited longest. */
  #release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
