// Enqueues the exit notice of a background process: input into the session that started it, or into a parent session if that is a
// finished sub-agent, with the trust and the reply address of the notified turn.
import { priorityOf, type Sender } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { senderOf } from "../../db/mappers.ts";
import { enqueueNotice } from "../inbox/system-input.ts";
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
  const { sessionId, trust } = listener;
  const parts = [{ type: "text" as const, text: `${listener.preface}${text}` }];
  const { process: priority } = priorityOf;
  const inboxId = await enqueueNotice(client, {
    sessionId,
    externalId: id,
    priority,
    parts,
    replyTo,
    sender,
    mode: "steer",
    trust,
  });
  wakes.push({ sessionId, priority, steers: trust });
  return inboxId;
}
