// Passes on queued notices when a sub-agent ends, in the same transaction: exit notices and results of sub-agents that it has not
// received. They go to the session that is notified instead, because nobody would read a further turn of the sub-agent.
import { priorityOf, textOf, type Part, type Sender } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { senderOf } from "../../db/mappers.ts";
import { singleRow } from "../../db/operation.ts";
import { noticeTarget } from "./notice-target.ts";
import type { ReadyHint } from "./notify.ts";
import { replyAddressOf } from "../outbox/reply-address.ts";

interface WaitingRow {
  id: string;
  account: "process" | "subagent";
  parts: string;
  sender: string;
  mode: string;
  /** The turn that the notice belongs to. */
  turn_id: string;
}

/** `turnId`: the turn that has ended; its session is locked. */
export async function escalateNotices(client: PoolClient, turnId: string, wakes: ReadyHint[]): Promise<void> {
  const { rows } = await client.query<WaitingRow>({
    name: "pass-on",
    text: `SELECT i.id, i.account, i.parts, i.sender, i.mode, coalesce(p.turn_id, r.parent_turn_id, t.id) AS turn_id
           FROM parley.turns t JOIN parley.inbox i ON i.session_id = t.session_id
           LEFT JOIN parley.processes p ON p.inbox_id = i.id
           LEFT JOIN parley.turns r ON r.id = CASE WHEN i.external_id LIKE 'result:%' THEN substr(i.external_id, 8)::uuid END
           WHERE t.id = $1 AND i.state = 'queued' AND i.channel = 'internal' AND i.account IN ('process', 'subagent')
             AND i.parent_turn_id IS NULL
           ORDER BY i.seq FOR UPDATE OF i`,
    values: [turnId],
  });
  for (const row of rows) await move(client, row, wakes);
}

async function move(client: PoolClient, row: WaitingRow, wakes: ReadyHint[]): Promise<void> {
  const listener = await noticeTarget(client, row.turn_id);
  // Not a sub-agent's session: people read its answers.
  if (listener.preface === "") return;
  const text = textOf(JSON.parse(row.parts) as Part[]);
  const replyTo = row.account === "process" ? await replyAddressOf(client, listener) : listener.replyTo;
  const sender: Sender = { ...senderOf(row.sender), role: senderOf(listener.sender).role };
  const session = await client.query<{ inbox_seq: number }>(
    "UPDATE parley.sessions SET inbox_seq = inbox_seq + 1 WHERE id = $1 RETURNING inbox_seq",
    [listener.sessionId],
  );
  await client.query(
    "UPDATE parley.inbox SET session_id = $2, seq = $3, parts = $4, reply_to = $5, sender = $6, trust = $7 WHERE id = $1",
    [
      row.id,
      listener.sessionId,
      singleRow(session.rows).inbox_seq,
      // A notice that was passed on before already has the preface.
      JSON.stringify([{ type: "text", text: text.startsWith(listener.preface) ? text : `${listener.preface}${text}` }]),
      replyTo,
      JSON.stringify(sender),
      listener.trust,
    ],
  );
  wakes.push({
    sessionId: listener.sessionId,
    priority: priorityOf[row.account],
    ...(row.mode === "steer" ? { steers: listener.trust } : {}),
  });
}
