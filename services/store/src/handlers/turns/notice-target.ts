// Finds the turn and session that receive notices about a turn's later results, such as the end of a background process or a sub-agent.
// This is the turn's own session. For a sub-agent that has finished, it is the session that started it, because nobody reads its output.
import type { TrustLevel } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { singleRow } from "../../db/operation.ts";

/** The turn's data for a notice: trust, reply address and sender. */
export interface TurnAudience {
  turnId: string;
  sessionId: string;
  trust: TrustLevel;
  /** JSON; null: no address. */
  replyTo: string | null;
  /** JSON. */
  sender: string;
}

interface TurnRow extends TurnAudience {
  parentTurnId: string | null;
  name: string;
}

export interface NoticeTarget extends TurnAudience {
  /** Prefix of the notice if it goes to another session than its origin; otherwise empty. */
  preface: string;
}

/**
 * Returns the notified turn. Its session and those below it are locked, from the lowest upwards, so that none of them can begin or end a
 * turn before the caller's transaction ends.
 */
export async function noticeTarget(client: PoolClient, turnId: string): Promise<NoticeTarget> {
  const own = await read(client, turnId);
  let turn = own;
  await lock(client, turn);
  while (turn.parentTurnId !== null && !(await works(client, turn))) {
    turn = await read(client, turn.parentTurnId);
    await lock(client, turn);
  }
  return { ...turn, preface: turn.sessionId === own.sessionId ? "" : `${prefaceOf(own)}\n\n` };
}

async function lock(client: PoolClient, { sessionId }: TurnRow): Promise<void> {
  await client.query("SELECT FROM parley.sessions WHERE id = $1 FOR UPDATE", [sessionId]);
}

async function read(client: PoolClient, turnId: string): Promise<TurnRow> {
  const { rows } = await client.query<TurnRow>({
    name: "listener-turn",
    text: `SELECT t.id AS "turnId", t.session_id AS "sessionId", t.trust, t.reply_to AS "replyTo", t.parent_turn_id AS "parentTurnId",
                  i.sender, coalesce(s.title, s.profile, 'task') AS name
           FROM parley.turns t JOIN parley.inbox i ON i.id = t.inbox_id JOIN parley.sessions s ON s.id = t.session_id WHERE t.id = $1`,
    values: [turnId],
  });
  return singleRow(rows);
}

/** Whether a sub-agent has a running task. Read under the session's lock, so that a turn that ended before is visible. */
async function works(client: PoolClient, { sessionId }: TurnRow): Promise<boolean> {
  const { rowCount } = await client.query(
    "SELECT FROM parley.turns WHERE session_id = $1 AND state = 'running' AND parent_turn_id IS NOT NULL",
    [sessionId],
  );
  return rowCount !== 0;
}

function prefaceOf({ name, sessionId }: TurnRow): string {
  return `[for sub-agent "${name}" (${sessionId}), which has finished; only that sub-agent can read omitted output]`;
}
