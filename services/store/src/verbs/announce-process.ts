// The announcement of a background command's end: input into the session that started it, with the trust of the turn that did,
// answered where its people are.
import { activeTrace } from "@parley/chassis";
import { newId, priorityOf, type Sender } from "@parley/contracts";
import type { PoolClient } from "../database.ts";
import { senderOf } from "../rows.ts";
import { only } from "../transaction.ts";
import type { Wake } from "./report.ts";

/** Of what came into a session lately, looked through for where it can be answered. */
const recentRows = 20;

interface StarterRow {
  trust: string;
  reply_to: string | null;
  sender: string;
  /** A sub-agent's session whose task is over: nobody would hear what is said there. */
  abandoned: boolean;
}

export interface AnnouncedProcess {
  id: string;
  session_id: string;
  /** That started it. */
  turn_id: string;
  /** That turn had read what outsiders wrote. */
  tainted: boolean;
}

/** Puts it into the session, which the caller has locked; false where nobody would hear it. */
export async function announceProcess(
  client: PoolClient,
  process: AnnouncedProcess,
  text: string,
  wakes: Wake[],
): Promise<boolean> {
  const { id, session_id: sessionId } = process;
  const starter = only(
    (
      await client.query<StarterRow>(
        `SELECT t.trust, t.reply_to, i.sender,
                s.parent_id IS NOT NULL AND NOT EXISTS (SELECT FROM parley.turns r WHERE r.session_id = s.id AND r.state = 'running') AS abandoned
         FROM parley.turns t JOIN parley.inbox i ON i.id = t.inbox_id JOIN parley.sessions s ON s.id = t.session_id WHERE t.id = $1`,
        [process.turn_id],
      )
    ).rows,
  );
  if (starter.abandoned) return false;
  const sender: Sender = {
    channel: "internal",
    account: "process",
    conversation: id,
    contact: { id, name: "background process" },
    role: senderOf(starter.sender).role,
    origin: "process",
    ...(process.tainted ? { tainted: true } : {}),
  };
  const replyTo = await whereToAnswer(client, sessionId, starter);
  const { rows: numbered } = await client.query<{ inbox_seq: number }>(
    "UPDATE parley.sessions SET inbox_seq = inbox_seq + 1 WHERE id = $1 RETURNING inbox_seq",
    [sessionId],
  );
  const inboxId = newId();
  await client.query(
    `INSERT INTO parley.inbox (id, session_id, seq, channel, account, external_id, priority, parts, reply_to, sender, mode, trust, trace)
     VALUES ($1, $2, $3, 'internal', 'process', $4, $5, $6, $7, $8, 'steer', $9, $10)`,
    [
      inboxId,
      sessionId,
      only(numbered).inbox_seq,
      id,
      priorityOf.process,
      JSON.stringify([{ type: "text", text }]),
      replyTo,
      JSON.stringify(sender),
      starter.trust,
      activeTrace(),
    ],
  );
  await client.query("UPDATE parley.processes SET inbox_id = $2 WHERE id = $1", [id, inboxId]);
  wakes.push({ sessionId, priority: priorityOf.process, steers: starter.trust });
  return true;
}

/**
 * Where whoever's word started it has spoken last in this session. What was begun in a group is answered where it was begun, and
 * what was begun elsewhere is not answered in a group.
 */
async function whereToAnswer(client: PoolClient, sessionId: string, starter: StarterRow): Promise<string | null> {
  if (senderOf(starter.sender).direct === false) return starter.reply_to;
  const { rows } = await client.query<{ reply_to: string; sender: string }>(
    `SELECT reply_to, sender FROM parley.inbox
     WHERE session_id = $1 AND trust = $2 AND reply_to IS NOT NULL ORDER BY seq DESC LIMIT ${recentRows}`,
    [sessionId, starter.trust],
  );
  return rows.find(({ sender }) => senderOf(sender).direct !== false)?.reply_to ?? starter.reply_to;
}
