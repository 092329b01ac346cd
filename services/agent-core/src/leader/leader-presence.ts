// What pings tell about the leader; pure. A killed process loses its bus connection immediately, and then nobody serves its subject: that is
// noticed long before the leader has been silent for long.

export interface LeaderPresence {
  /** When the leader last answered a ping, or when observation started. Monotonic milliseconds, like all times here. */
  readonly lastAnswerAt: number;
  /** Who answered last, with which epoch, and on which connection of this replica to the bus. */
  readonly answered: { holder: string; epoch: number; connection: number } | undefined;
  /** Since when nobody serves the leader's subject, after it had answered on the same connection; undefined: it is served, or unknown. */
  readonly absentSince: number | undefined;
}

/** Result of a ping. `unserved`: the bus reports that nobody serves the subject. `unknown`: no reply in time. */
export type PingResult = { type: "answer"; holder: string; epoch: number } | { type: "unserved" } | { type: "unknown" };

export function initialPresence(now: number): LeaderPresence {
  return { lastAnswerAt: now, answered: undefined, absentSince: undefined };
}

/**
 * The presence after a ping. `connection` counts the connections of this replica to the bus: after a restart of the bus the leader may
 * reconnect later than this replica, so an answer on an earlier connection proves nothing.
 */
export function afterPing(
  before: LeaderPresence,
  result: PingResult,
  { connection, now }: { connection: number; now: number },
): LeaderPresence {
  switch (result.type) {
    case "answer": {
      const { holder, epoch } = result;
      return { lastAnswerAt: now, answered: { holder, epoch, connection }, absentSince: undefined };
    }
    case "unserved":
      return {
        ...before,
        absentSince: before.answered?.connection === connection ? (before.absentSince ?? now) : undefined,
      };
    default:
      return { ...before, absentSince: undefined };
  }
}

/** The holder whose process has ended, as far as the bus tells: nobody has served its subject for `absentMs`. */
export function absentHolder(
  { answered, absentSince }: LeaderPresence,
  now: number,
  absentMs: number,
): string | undefined {
  return absentSince !== undefined && now - absentSince >= absentMs ? answered?.holder : undefined;
}

/** The time between the starts of two pings in milliseconds: shorter while the absence of the leader is to be confirmed. */
export function pingIntervalMs({ absentSince }: LeaderPresence, lease: { pingMs: number; absentMs: number }): number {
  return absentSince === undefined ? lease.pingMs : lease.absentMs / 4;
}

/** The round of pings that runs now. */
export interface PingRound {
  startedAt: number;
  now: number;
  /** How long a round takes at most while this process runs. */
  maxMs: number;
}

/**
 * When the leader last answered, as far as this process could notice: a round that takes longer than it can means that this process itself
 * did not run, such as on a busy machine. That time is not silence of the leader, which may have answered all the while.
 */
export function noticedAnswerAt({ lastAnswerAt }: LeaderPresence, { startedAt, now, maxMs }: PingRound): number {
  return Math.min(now, lastAnswerAt + Math.max(0, now - startedAt - maxMs));
}
