// When a standby may take over; pure. It may be eager, because writes are fenced; it may never be needed late.
import type { LeaseTimes } from "../config.ts";

export interface Observation {
  /** Who holds the lock; null when nobody does or Redis was not asked yet. */
  holder: string | null;
  /** When that holder was first seen. */
  heldSince: number;
  /** Monotonic milliseconds, as all times here. */
  now: number;
  /** When the leader last answered a ping, or when watching began. */
  lastAnswerAt: number;
  /** Who said that it gives the leadership up. */
  released: string | undefined;
}

/** `<replica>/<incarnation>`: who holds the lock. */
export function ownerName(replica: string, incarnation: string): string {
  return `${replica}/${incarnation}`;
}

/** True when the lock may be taken from its holder. */
export function mayReplace(
  seen: Observation,
  self: { replica: string; incarnation: string },
  times: LeaseTimes,
): boolean {
  if (seen.holder === null) return false;
  if (seen.released === seen.holder) return true;
  // An earlier life of this very replica is certainly over.
  const ownEarlierLife =
    seen.holder.startsWith(`${self.replica}/`) && seen.holder !== ownerName(self.replica, self.incarnation);
  // Whoever has just taken over from a silent leader is not silent as long: it has yet to ask the store for its epoch.
  return ownEarlierLife || seen.now - Math.max(seen.lastAnswerAt, seen.heldSince) >= times.silentMs;
}
