// Enqueues the exit notice of a background process: input into the session that started it, or into a parent session if that is a
// finished sub-agent, with the trust and the reply address of the notified turn.
import { activeTrace } from "@parley/chassis";
import { newId, priorityOf, type Sender } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { senderOf } from "../../db/mappers.ts";
import { singleRow } from "../../db/operation.ts";
import { noticeTarget } from "../turns/notice-target.ts";
import type { ReadyHint } from "../turns/notify.ts";
import { replyAddressOf } from "../outbox/reply-address.ts";

export interface AnnouncedProcess {
  id: string;
  /** The turn that started it. */
  turn_id: string;
  /** That turn had read untrusted content. */
  tainted: boolean;
}

/** Enqueues the notice in the notified session and returns the row's id. The caller has locked the session that started the process. */
export async function enqueueExitNotice(
  client: PoolClient,
  process: AnnouncedProcess,
  text: string,
  wakes: ReadyHint[],
): Promise<string> {
  const { id } = process;
  const listener = await noticeTarget(client, process.turn_id);
  const sender: Sender = {
    channel: "internal",
    account: "process",
    conversation: id,
    contact: { id, name: "background process" },
    role: senderOf(listener.sender).role,
    origin: "process",
    ...(process.tainted ? { tainted: true } : {}),
  };
  const replyTo = await replyAddressOf(client, listener);
  const { rows: numbered } = await client.query<{ inbox_seq: number }>(
    "UPDATE parley.sessions SET inbox_seq = inbox_seq + 1 WHERE id = $1 RETURNING inbox_seq",
    [listener.sessionId],
  );
  const inboxId = newId();
  await client.query(
    `INSERT INTO parley.inbox (id, session_id, seq, channel, account, external_id, priority, parts, reply_to, sender, mode, trust, trace)
     VALUES ($1, $2, $3, 'internal', 'process', $4, $5, $6, $7, $8, 'steer', $9, $10)`,
    [
      inboxId,
      listener.sessionId,
      singleRow(numbered).inbox_seq,
      id,
      priorityOf.process,
      JSON.stringify([{ type: "text", text: `${listener.preface}${text}` }]),
      replyTo,
      JSON.stringify(sender),
      listener.trust,
      activeTrace(),
    ],
  );
  wakes.push({ sessionId: listener.sessionId, priority: priorityOf.process, steers: listener.trust });
  return inboxId;
}
