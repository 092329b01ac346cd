// When a standby may take over; pure. It may be too early, because writes are fenced; it must never be too late.
import type { LeaseTimes } from "../config.ts";

export interface Observation {
  /** The lock's holder; null when there is none or Redis has not responded yet. */
  holder: string | null;
  /** When that holder was first seen. */
  heldSince: number;
  /** Monotonic milliseconds, like all times here. */
  now: number;
  /** When the leader last answered a ping, or when observation started. */
  lastAnswerAt: number;
  /** The holder that announced a hand-over. */
  released: string | undefined;
  /** The holder whose process has ended, as far as the bus tells. */
  absent: string | undefined;
}

/** `<replica>/<incarnation>`: a lock holder. */
export function ownerName(replica: string, incarnation: string): string {
  return `${replica}/${incarnation}`;
}

/** True when the lock may be taken from its holder. */
export function mayTakeOver(
  seen: Observation,
  self: { replica: string; incarnation: string },
  times: LeaseTimes,
): boolean {
  if (seen.holder === null) return false;
  if (seen.released === seen.holder || seen.absent === seen.holder) return true;
  // A previous instance of this replica has certainly ended.
  const isPreviousInstance =
    seen.holder.startsWith(`${self.replica}/`) && seen.holder !== ownerName(self.replica, self.incarnation);
  // A new leader gets the same time before it counts as silent: it first has to request its epoch from the store.
  return isPreviousInstance || seen.now - Math.max(seen.lastAnswerAt, seen.heldSince) >= times.silentMs;
}

/** Why the lock was taken from its holder, for the log. */
export function takeoverReason(seen: Observation): string {
  if (seen.released === seen.holder) return "handed over";
  if (seen.absent === seen.holder) return "its connection to the bus ended";
  return `no answer for ${Math.round(seen.now - seen.lastAnswerAt)} ms`;
}
