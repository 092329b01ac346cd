// How often it is said on the bus that a server has heard something: a server may say it as often as it likes. The last word of a flood
// is never swallowed, only late. Pure.

/** Between two words about one server: 20 a second. */
export const throttleMs = 50;

export interface Throttle {
  /** When something was said last, on the monotonic clock. */
  saidMs: number;
  /** The session that is to be spoken of; null: any; undefined: there is nothing to say. */
  waiting: string | null | undefined;
}

export const silent: Throttle = { saidMs: -Infinity, waiting: undefined };

/** There is news of a session; null: of any. */
export function withNews({ saidMs, waiting }: Throttle, session: string | null): Throttle {
  return { saidMs, waiting: waiting === undefined || waiting === session ? session : null };
}

/** How long what waits has to wait; null: nothing waits. */
export function dueInMs({ saidMs, waiting }: Throttle, nowMs: number): number | null {
  return waiting === undefined ? null : Math.max(0, saidMs + throttleMs - nowMs);
}

export function afterSaying(nowMs: number): Throttle {
  return { saidMs: nowMs, waiting: undefined };
}
