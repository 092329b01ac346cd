// The time limit of a call, paused while the call waits for a person. It does not know what happens at the deadline.

export class Deadline {
  readonly #over: () => void;
  #leftMs: number;
  #pauses = 0;
  #runningSince = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `over` is called once, when `ms` have passed, not counting pauses. */
  constructor(ms: number, over: () => void) {
    this.#leftMs = ms;
    this.#over = over;
    this.#run();
  }

  /** Pauses the clock; the returned function resumes it. Overlapping pauses end with the last one. */
  pause(): () => void {
    if (this.#pauses === 0) this.#stop();
    this.#pauses += 1;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#pauses -= 1;
      if (this.#pauses === 0) this.#run();
    };
  }

  /** Cancels the deadline. */
  close(): void {
    this.#stop();
    this.#pauses = Infinity;
  }

  #run(): void {
    this.#runningSince = performance.now();
    this.#timer = setTimeout(this.#over, Math.max(0, this.#leftMs));
  }

  #stop(): void {
    clearTimeout(this.#timer);
    if (this.#timer !== undefined) this.#leftMs -= performance.now() - this.#runningSince;
    this.#timer = undefined;
  }
}
