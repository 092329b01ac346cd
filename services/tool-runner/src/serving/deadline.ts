// The wall time of a call, which stands still while somebody is asked something. It does not know what happens at its end.

export class Deadline {
  readonly #over: () => void;
  #leftMs: number;
  #pauses = 0;
  #runningSince = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `over` is called once, when `ms` have gone by without the pauses. */
  constructor(ms: number, over: () => void) {
    this.#leftMs = ms;
    this.#over = over;
    this.#run();
  }

  /** Holds the time; the returned function lets it go on. What is held several times goes on with the last of them. */
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

  /** It will not be over any more. */
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
