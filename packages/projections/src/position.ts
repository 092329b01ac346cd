// How far a session's log was told. Pure.
import type { SessionEvent } from "@parley/contracts";

export class Position {
  #seq = 0;

  /** Whether a durable event was told before; if not, it is now. An end that was asked for afterwards has no number (0). */
  isOld(event: SessionEvent): boolean {
    if (!("seq" in event) || event.seq === 0) return false;
    if (event.seq <= this.#seq) return true;
    this.#seq = event.seq;
    return false;
  }
}
