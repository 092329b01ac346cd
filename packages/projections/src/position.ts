// Tracks the position in a session's log. Pure.
import type { SessionEvent } from "@parley/contracts";

export class Position {
  #seq = 0;

  /** Whether a durable event was already seen; otherwise records it. A synthetic end event has seq 0 and is never old. */
  isOld(event: SessionEvent): boolean {
    if (!("seq" in event) || event.seq === 0) return false;
    if (event.seq <= this.#seq) return true;
    this.#seq = event.seq;
    return false;
  }
}
