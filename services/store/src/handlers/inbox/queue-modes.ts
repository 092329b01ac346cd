// What the queue modes of a message need in addition to its row: whether the session is busy, and the window of coalesced messages.
import type { TrustLevel } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { singleRow } from "../../db/operation.ts";
import { askFromJob, isJobs } from "../questions/ask.ts";
import { resolveRoute } from "../sessions/routes.ts";

/** The session's running turn and queue, read under its lock; undefined when irrelevant for the mode or without a session. `isAnswer`: a question waits for the message. `mayAnswer`: it can be an answer. */
export async function lockBusy(
  client: PoolClient,
  route: string,
  mode: string,
  { trust, replyTo, mayAnswer }: { trust: TrustLevel; replyTo: string | null; mayAnswer: boolean },
) {
  if (mode !== "reject" && mode !== "interrupt") return undefined;
  const sessionId = (await resolveRoute(client, route))?.id;
  if (sessionId === undefined) return undefined;
  const { rows } = await client.query<{
    turn_id: string | null;
    trust: TrustLevel | null;
    exclusive: boolean | null;
    queued: boolean;
    asked: boolean;
  }>(
    `SELECT t.id AS turn_id, t.trust, t.exclusive, EXISTS (SELECT FROM parley.inbox WHERE session_id = $1 AND state = 'queued') AS queued,
            EXISTS (SELECT FROM parley.questions q WHERE q.turn_id = t.id AND q.state = 'open' AND q.trust = $2 AND q.expires_at > now()
              AND (q.held_until IS NULL OR q.held_until > now()) AND NOT ${isJobs}) OR ${askFromJob("$2", "$3")} AS asked
     FROM (VALUES (1)) AS one LEFT JOIN parley.turns t ON t.session_id = $1 AND t.state = 'running'`,
    [sessionId, trust, replyTo],
  );
  const { turn_id: turnId, trust: runningTrust, exclusive: runningExclusive, queued, asked } = singleRow(rows);
  // A turn that waits for this message is not busy.
  const isAnswer = asked && mayAnswer;
  const waits = !isAnswer && (turnId !== null || queued);
  return { sessionId, turnId, trust: runningTrust, exclusive: runningExclusive === true, waits, isAnswer };
}

/** Maximum number of windows that the first of several messages waits. */
const maxWindows = 5;

/** Earlier messages of the same sender also wait until the end of this message's window. */
export async function extendWindow(
  client: PoolClient,
  row: { id: string | null; session_id: string },
  sender: string,
  windowMs: number,
): Promise<void> {
  await client.query(
    `UPDATE parley.inbox SET ready_at = least(now() + $4 * interval '1 millisecond', received_at + $4 * ${maxWindows} * interval '1 millisecond')
     WHERE session_id = $1 AND id <> $2 AND sender = $3 AND state = 'queued' AND mode = 'coalesce' AND ready_at > now()`,
    [row.session_id, row.id, sender, windowMs],
  );
}
