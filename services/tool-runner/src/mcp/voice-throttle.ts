// Limits how often announcements of a server are published on the bus. The last announcement of a burst is delayed, never dropped.
// Pure.

/** Minimum interval between two hints about one server: 20 per second. */
export const throttleMs = 50;

export interface Throttle {
  /** The time of the last hint, on the monotonic clock. */
  saidMs: number;
  /** The session of the pending hint; null: any session; undefined: nothing is pending. */
  waiting: string | null | undefined;
}

export const silent: Throttle = { saidMs: -Infinity, waiting: undefined };

/** Adds an announcement for a session; null: for any session. */
export function withNews({ saidMs, waiting }: Throttle, session: string | null): Throttle {
  return { saidMs, waiting: waiting === undefined || waiting === session ? session : null };
}

/** The remaining delay of the pending hint; null if nothing is pending. */
export function dueInMs({ saidMs, waiting }: Throttle, nowMs: number): number | null {
  return waiting === undefined ? null : Math.max(0, saidMs + throttleMs - nowMs);
}

export function afterSaying(nowMs: number): Throttle {
  return { saidMs: nowMs, waiting: undefined };
}
