// The pace of one voice session: waits until its server is to be asked again, by the clock or because the server has something.
import { firstPace, gapMs, paceAfter, steadyMs, type PaceSettings } from "./pace.ts";

export class Pacer {
  readonly #settings: PaceSettings;
  #pace = firstPace;
  /** When the question that runs was begun, on the monotonic clock. */
  #askedMs = -Infinity;
  #announced = false;
  #found = false;
  /** The tool-runner that has said since then that there is something; null: none did. */
  #told: string | null = null;
  #wake: () => void = () => undefined;

  constructor(settings: PaceSettings) {
    this.#settings = settings;
  }

  /** The server says by itself when there is something new. */
  get pushed(): boolean {
    return this.#pace.pushed;
  }

  /** A tool-runner says that the server has something. However often it is said while a question runs, it is one question more. */
  hint(runner: string): void {
    this.#told = runner;
    this.#wake();
  }

  /** A question begins. Answers with the tool-runner that said there is something: it reaches the server; null: none did. */
  asks(): string | null {
    const through = this.#told;
    this.#askedMs = performance.now();
    this.#announced = through !== null;
    this.#found = false;
    this.#told = null;
    return through;
  }

  /** The question has brought something new. */
  found(): void {
    this.#found = true;
  }

  /** The question is over. Resolves when the next one is to be asked, or when the signal aborts. */
  async next(signal: AbortSignal): Promise<void> {
    // What was said meanwhile may be about what was just found.
    const announced = this.#announced || this.#told !== null;
    this.#pace = paceAfter(this.#pace, { announced, found: this.#found });
    if (this.#told === null) await this.#wait(steadyMs(this.#pace, this.#settings), signal, true);
    const pausedMs = performance.now() - this.#askedMs;
    const leftMs = gapMs(this.#pace, this.#settings) - pausedMs;
    if (leftMs > 0) await this.#wait(leftMs, signal, false);
  }

  /** `hints`: one of them ends it. */
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
