// When an account as a whole has to wait. One conversation that is refused waits alone, in the store; when several are refused in
// a row, it is the platform or the account that is refused. Pure but for what it remembers.

const maxPauseMs = 60_000;

export class Pacing {
  /** Conversations refused since the last text that got through. */
  readonly #refused = new Set<string>();
  #untilMs = 0;

  /** A platform did not take a text and wants to be asked again later. */
  refused(conversation: string, afterMs: number, nowMs: number): void {
    this.#refused.add(conversation);
    if (this.#refused.size > 1) this.#untilMs = Math.max(this.#untilMs, nowMs + Math.min(afterMs, maxPauseMs));
  }

  /** A text got through, or was refused for good: the account works. */
  accepted(): void {
    this.#refused.clear();
    this.#untilMs = 0;
  }

  /** How long nothing should be sent. */
  pauseMs(nowMs: number): number {
    return Math.max(0, this.#untilMs - nowMs);
  }
}
