// Who hears what comes of a turn's work later: the end of a command that it left in the background, of a sub-agent. Its own session, and
// of a sub-agent's as long as the sub-agent works; after that whoever gave it its task, since nobody hears what a sub-agent says then.
import type { PoolClient } from "../database.ts";
import { only } from "../transaction.ts";

/** A turn as it is answered for: with its trust, at its address, by whoever spoke. */
export interface TurnHeard {
  turnId: string;
  sessionId: string;
  trust: string;
  /** JSON; null: nowhere. */
  replyTo: string | null;
  /** JSON. */
  sender: string;
}

interface TurnRow extends TurnHeard {
  parentTurnId: string | null;
  name: string;
}

export interface Listener extends TurnHeard {
  /** What has to be said before it, where another session hears it than the one that it came from; else empty. */
  preface: string;
}

/**
 * The turn on whose behalf it is heard, in the session that hears it. That session is locked, from the lowest upwards: none of them can
 * begin or end a turn before the caller's transaction ends.
 */
export async function listenerOf(client: PoolClient, turnId: string): Promise<Listener> {
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
  return only(rows);
}

/** A sub-agent has a task in hand. Read after the session was locked: the end of a turn that held the lock before is seen. */
async function works(client: PoolClient, { sessionId }: TurnRow): Promise<boolean> {
  const { rowCount } = await client.query(
    "SELECT FROM parley.turns WHERE session_id = $1 AND state = 'running' AND parent_turn_id IS NOT NULL",
    [sessionId],
  );
  return rowCount !== 0;
}

function prefaceOf({ name, sessionId }: TurnRow): string {
  return `[for sub-agent "${name}" (${sessionId}), whose work is over; what is not shown here, only it can look at]`;
}
