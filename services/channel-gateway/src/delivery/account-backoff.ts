// Backoff of a whole account. A single refused conversation waits in the store; refusals of several conversations in a row mean that
// the platform limits the account. No I/O and no clock of its own.

const maxPauseMs = 60_000;

export class AccountBackoff {
  /** Conversations refused since the last accepted text. */
  readonly #refused = new Set<string>();
  #untilMs = 0;

  /** The platform refused a text and requested a later retry. */
  refused(conversation: string, afterMs: number, nowMs: number): void {
    this.#refused.add(conversation);
    if (this.#refused.size > 1) this.#untilMs = Math.max(this.#untilMs, nowMs + Math.min(afterMs, maxPauseMs));
  }

  /** A text was accepted or permanently refused, so the account works. */
  accepted(): void {
    this.#refused.clear();
    this.#untilMs = 0;
  }

  /** The remaining pause of the account. */
  pauseMs(nowMs: number): number {
    return Math.max(0, this.#untilMs - nowMs);
  }
}
