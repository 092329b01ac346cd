// Waits for the next poll of one voice session, by timer or on a notification of its server.
import { firstPace, gapMs, paceAfter, steadyMs, type PaceSettings } from "./pace.ts";

export class Pacer {
  readonly #settings: PaceSettings;
  #pace = firstPace;
  /** Start of the current poll, on the monotonic clock. */
  #askedMs = -Infinity;
  #announced = false;
  #found = false;
  /** The tool-runner that has sent a notification since then; null if none has. */
  #told: string | null = null;
  #wake: () => void = () => undefined;

  constructor(settings: PaceSettings) {
    this.#settings = settings;
  }

  /** Whether the server's notifications are effective. */
  get pushed(): boolean {
    return this.#pace.pushed;
  }

  /** Records a notification. Any number of them during a poll cause one more poll. */
  hint(runner: string): void {
    this.#told = runner;
    this.#wake();
  }

  /** Starts a poll. Returns the tool-runner that sent the notification, since it reaches the server; null if none did. */
  asks(): string | null {
    const through = this.#told;
    this.#askedMs = performance.now();
    this.#announced = through !== null;
    this.#found = false;
    this.#told = null;
    return through;
  }

  /** Records that the poll returned new events. */
  found(): void {
    this.#found = true;
  }

  /** Ends the poll. Resolves when the next one is due, or when the signal aborts. */
  async next(signal: AbortSignal): Promise<void> {
    // A notification during the poll may concern the events that the poll returned.
    const announced = this.#announced || this.#told !== null;
    this.#pace = paceAfter(this.#pace, { announced, found: this.#found });
    if (this.#told === null) await this.#wait(steadyMs(this.#pace, this.#settings), signal, true);
    const pausedMs = performance.now() - this.#askedMs;
    const leftMs = gapMs(this.#pace, this.#settings) - pausedMs;
    if (leftMs > 0) await this.#wait(leftMs, signal, false);
  }

  /** `hints`: a notification ends the wait. */
  async #wait(ms: number, signal: AbortSignal, hints: boolean): Promise<void> {
    if (signal.aborted) return;
    const over = Promise.withResolvers<undefined>();
    const end = () => over.resolve(undefined);
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
    if (hints) this.#wake = end;
    await over.promise;
    this.#wake = () => undefined;
    signal.removeEventListener("abort", end);
    clearTimeout(timer);
  }
}
