// What waits in the whole cluster, who led it, and dead letters: a list, and another attempt.
import { activeTrace } from "@parley/chassis";
import {
  inboxReady,
  newId,
  textOf,
  WireError,
  type InputOf,
  type OutputOf,
  type Part,
  type store,
} from "@parley/contracts";
import type { Database } from "../../db/database.ts";
import { senderOf } from "../../db/mappers.ts";
import { runTransaction } from "../../db/operation.ts";
import type { Handlers } from "../handler.ts";

type Report = OutputOf<typeof store.workReport>;
type Retried = OutputOf<typeof store.inboxRetry>;

/** The rows of each list. */
const listed = 50;
const shownCharacters = 200;

/** The retried input has this id; so a dead letter is retried once. */
const retryOf = "'retry:' || i.id";
const wasRetried = `EXISTS (SELECT FROM parley.inbox r WHERE (r.channel, r.account, r.external_id) = (i.channel, i.account, ${retryOf}))`;

interface DeadRow {
  inboxId: string;
  sessionId: string;
  sessionTitle: string | null;
  turnId: string | null;
  parts: string;
  sender: string;
  receivedAt: string;
  failedAt: string | null;
  attempts: number | null;
}

const figures = `
  SELECT
    (SELECT json_build_object('count', count(*), 'oldestAt', min(received_at)) FROM parley.inbox WHERE state = 'queued') AS inbox,
    (SELECT json_build_object('count', count(*), 'oldestAt', min(created_at)) FROM parley.outbox
     WHERE state IN ('pending', 'sending')) AS outbox,
    (SELECT count(*)::int FROM parley.outbox WHERE state = 'unknown' AND created_at > now() - interval '1 day') AS "unknownDeliveries",
    (SELECT json_build_object('running', count(*) FILTER (WHERE NOT parked), 'parked', count(*) FILTER (WHERE parked))
     FROM parley.turns WHERE state = 'running') AS turns`;

const takeovers = `
  SELECT epoch, holder, acquired_at AS "acquiredAt" FROM parley.leadership_log ORDER BY epoch DESC LIMIT ${listed}`;

const deadLetters = `
  SELECT i.id AS "inboxId", i.session_id AS "sessionId", s.title AS "sessionTitle", i.turn_id AS "turnId", i.parts, i.sender,
         i.received_at AS "receivedAt", t.finished_at AS "failedAt", t.attempts
  FROM parley.inbox i JOIN parley.sessions s ON s.id = i.session_id LEFT JOIN parley.turns t ON t.id = i.turn_id
  WHERE i.state = 'dead' AND i.parent_turn_id IS NULL AND NOT ${wasRetried}
  ORDER BY i.received_at DESC LIMIT ${listed}`;

const requeue = `
  WITH dead AS (
    SELECT i.* FROM parley.inbox i WHERE i.id = $1 AND i.state = 'dead' AND i.parent_turn_id IS NULL AND NOT ${wasRetried}
  ), numbered AS (
    UPDATE parley.sessions s SET inbox_seq = s.inbox_seq + 1, status = 'active' FROM dead WHERE s.id = dead.session_id
    RETURNING s.inbox_seq
  )
  INSERT INTO parley.inbox (id, session_id, seq, channel, account, external_id, priority, parts, reply_to, sender, mode, trust, trace,
                            conversation, message_id, sent_at)
  SELECT $2, i.session_id, numbered.inbox_seq, i.channel, i.account, ${retryOf}, i.priority, i.parts, i.reply_to, i.sender, 'queue', i.trust, $3,
         i.conversation, i.message_id, i.sent_at
  FROM dead i, numbered
  ON CONFLICT (channel, account, external_id) DO NOTHING
  RETURNING id, session_id, priority`;

export const workHandlers = {
  async workReport({ database }) {
    const [work, log, dead] = await Promise.all([
      database.query<Omit<Report, "takeovers" | "deadLetters">>(figures, []),
      database.query<Report["takeovers"][number]>(takeovers, []),
      database.query<DeadRow>(deadLetters, []),
    ]);
    const [row] = work.rows;
    if (row === undefined) throw new Error("the figures have no row");
    return {
      ...row,
      inbox: inUtc(row.inbox),
      outbox: inUtc(row.outbox),
      takeovers: log.rows,
      deadLetters: dead.rows.map(({ parts, sender, ...rest }) => ({
        ...rest,
        text: Array.from(textOf(JSON.parse(parts) as Part[]).slice(0, 2 * shownCharacters))
          .slice(0, shownCharacters)
          .join(""),
        from: senderOf(sender),
      })),
    };
  },

  async inboxRetry({ database, bus }, { inboxId }: InputOf<typeof store.inboxRetry>): Promise<Retried> {
    const row = await runTransaction(database, async (client) => {
      const { rows } = await client.query<{ id: string; session_id: string; priority: number }>(requeue, [
        inboxId,
        newId(),
        activeTrace(),
      ]);
      return rows[0];
    });
    if (row === undefined) return { ...(await earlierRetry(database, inboxId)), repeated: true };
    bus.publish(inboxReady, { sessionId: row.session_id, priority: row.priority });
    return { inboxId: row.id, sessionId: row.session_id, repeated: false };
  },
} satisfies Partial<Handlers>;

async function earlierRetry(database: Database, inboxId: string): Promise<Omit<Retried, "repeated">> {
  const { rows } = await database.query<Omit<Retried, "repeated">>(
    `SELECT r.id AS "inboxId", r.session_id AS "sessionId" FROM parley.inbox i
     JOIN parley.inbox r ON (r.channel, r.account, r.external_id) = (i.channel, i.account, ${retryOf}) WHERE i.id = $1`,
    [inboxId],
  );
  const [row] = rows;
  if (row === undefined)
    throw new WireError("NOT_FOUND", `message ${inboxId} is not a dead letter that can be retried`);
  return row;
}

/** JSON of PostgreSQL contains times with the offset of its time zone. */
function inUtc({ count, oldestAt }: Report["inbox"]): Report["inbox"] {
  return { count, oldestAt: oldestAt === null ? null : new Date(oldestAt).toISOString() };
}
