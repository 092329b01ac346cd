// How long to wait for a reply before a request is sent again, so that another replica may answer it: the retransmission timer of TCP (RFC 6298)
// for each kind of request. It is short while replies are fast, so a replica that was cut off costs little, and long while they are slow, so
// that an overloaded service does not get its requests twice.
import type { RequestContract } from "@parley/contracts";

/** Before the first reply (RFC 6298, 2.1). */
const firstMs = 1_000;
/** Above the pauses of a busy process, such as garbage collection. Linux has the same limit for TCP. */
const minMs = 200;
export const maxResendMs = 2_500;
/**
 * TCP doubles its timeout, because every retransmission takes the same path. Here a repetition may reach another replica: if one of two is
 * cut off, every second attempt is lost, so the delay grows more slowly.
 */
export const growth = 1.5;

export class ResendDelay {
  #meanMs: number | undefined;
  #deviationMs = 0;

  /** Adds the time from an attempt to its own reply, in milliseconds. The weights are those of RFC 6298, 2.3. */
  note(durationMs: number): void {
    if (this.#meanMs === undefined) {
      this.#meanMs = durationMs;
      this.#deviationMs = durationMs / 2;
      return;
    }
    this.#deviationMs += (Math.abs(this.#meanMs - durationMs) - this.#deviationMs) / 4;
    this.#meanMs += (durationMs - this.#meanMs) / 8;
  }

  /** The wait for the reply to the first attempt, in milliseconds; each later one is `growth` times as long, up to `maxResendMs`. */
  get ms(): number {
    if (this.#meanMs === undefined) return firstMs;
    return Math.min(maxResendMs, Math.max(minMs, this.#meanMs + 4 * this.#deviationMs));
  }
}

/** One for each kind of request. Only where another replica may answer: the others wait for `maxResendMs`. */
export class ResendDelays {
  readonly #bySubject = new Map<string, ResendDelay>();

  of({ served, subject }: Pick<RequestContract, "served" | "subject">): ResendDelay | undefined {
    if (served !== "group") return undefined;
    const known = this.#bySubject.get(subject) ?? new ResendDelay();
    this.#bySubject.set(subject, known);
    return known;
  }
}
