// Reports the end of a sub-agent's turn to its parent, in the transaction of that end, and wakes sessions after a commit.
import { truncateContent, maxResultBytesFor, type Bus } from "@parley/bus";
import {
  inboxReady,
  priorityOf,
  type Finish,
  type Sender,
  type TaskMode,
  type ToolResult,
  type TrustLevel,
} from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { durationOf, senderOf } from "../../db/mappers.ts";
import { enqueueNotice } from "../inbox/system-input.ts";
import { noticeTarget } from "./notice-target.ts";
import { escalateNotices } from "./escalate.ts";

export interface ReadyHint {
  sessionId: string;
  priority: number;
  /** The trust of input that may join a running turn. */
  steers?: TrustLevel;
}

/** Publishes wake-up hints; call after the commit. */
export function publishReady(bus: Bus, wakes: readonly ReadyHint[]): void {
  for (const each of wakes) bus.publish(inboxReady, each);
}

/**
 * Unparks a turn in the transaction that recorded the awaited event. Returns its session's id; undefined when it was not parked. A
 * separate statement after the lock on the step or question, which parking also holds, so that a concurrent parking is visible. A turn
 * that is not parked is not locked.
 */
export async function unpark(client: PoolClient, turnId: string): Promise<string | undefined> {
  const { rows } = await client.query<{ session_id: string }>({
    name: "turn-unpark",
    text: "UPDATE parley.turns SET parked = false, wake_at = NULL WHERE id = $1 AND parked RETURNING session_id",
    values: [turnId],
  });
  return rows[0]?.session_id;
}

interface TaskRow {
  parent_turn_id: string;
  parent_step: number;
  parent_mode: TaskMode;
  child_id: string;
  child_key: string;
  child_title: string | null;
  profile: string | null;
  parent_session_id: string;
  announce: "steer" | "queue";
  /** The sub-agent's turn was tainted, so its report is. */
  tainted: boolean;
}

/** Does nothing for a turn without a parent. */
export async function notifyParent(
  client: PoolClient,
  turnId: string,
  finish: Finish,
  wakes: ReadyHint[],
): Promise<void> {
  const { rows } = await client.query<TaskRow>(
    `SELECT t.parent_turn_id, t.parent_step, t.parent_mode, s.id AS child_id, s.key AS child_key, s.title AS child_title, s.profile,
            p.session_id AS parent_session_id, task.mode AS announce,
            EXISTS (SELECT FROM parley.messages m WHERE m.session_id = t.session_id AND m.turn_id = t.id AND m.tainted) AS tainted
     FROM parley.turns t
     JOIN parley.sessions s ON s.id = t.session_id
     JOIN parley.inbox task ON task.id = t.inbox_id
     JOIN parley.turns p ON p.id = t.parent_turn_id
     WHERE t.id = $1`,
    [turnId],
  );
  const task = rows[0];
  if (task === undefined) return;
  if (task.parent_mode === "wait") await answerCall(client, task, finish);
  else if (finish.state !== "cancelled") await announce(client, task, turnId, finish, wakes);
  // Lock order: this locks sessions, after the call (which the end of the parent's turn locks before its session) and before the parent's
  // turn (which a claim locks after the session).
  await escalateNotices(client, turnId, wakes);
  if (task.parent_mode === "wait") {
    await unpark(client, task.parent_turn_id);
    wakes.push({ sessionId: task.parent_session_id, priority: priorityOf.user });
  }
}

/** Settles the parent's waiting call with the result. */
async function answerCall(client: PoolClient, task: TaskRow, finish: Finish): Promise<void> {
  const step = await client.query<{ call_id: string; tool: string; started_at: string | null; results: number }>(
    `SELECT call_id, tool, started_at,
            (SELECT count(*)::int FROM parley.steps b WHERE b.turn_id = $1 AND b.kind = 'tool' AND b.message_seq IS NULL) AS results
     FROM parley.steps
     WHERE turn_id = $1 AND n = $2 AND kind = 'tool' AND state IN ('intended', 'running') FOR UPDATE`,
    [task.parent_turn_id, task.parent_step],
  );
  const call = step.rows[0];
  if (call !== undefined) {
    const done = finish.state === "done";
    const report = done ? finish.text : `The sub-agent did not finish (${finish.exitReason}): ${finish.text}`;
    // By the id, a later call can continue the sub-agent.
    const from = `\n\n[sub-agent ${task.child_id}]`;
    const result: ToolResult = {
      type: "tool_result",
      id: call.call_id,
      name: call.tool,
      // The sub-agent's session contains the full text.
      content: truncateContent(report, maxResultBytesFor(call.results) - from.length) + from,
      isError: !done,
      ...durationOf(call.started_at),
      ...(task.tainted ? {} : { untainted: true }),
    };
    await client.query(
      "UPDATE parley.steps SET state = $3, result = $4, finished_at = now() WHERE turn_id = $1 AND n = $2",
      [task.parent_turn_id, task.parent_step, done ? "done" : "failed", JSON.stringify(result)],
    );
  }
}

/** Enqueues a background result once, in the parent's session or above it, with the reply address of that turn. */
async function announce(
  client: PoolClient,
  task: TaskRow,
  turnId: string,
  finish: Finish,
  wakes: ReadyHint[],
): Promise<void> {
  const listener = await noticeTarget(client, task.parent_turn_id);
  const sender: Sender = {
    channel: "internal",
    account: "subagent",
    conversation: task.child_key,
    contact: { id: task.child_id, name: task.profile ?? "sub-agent" },
    role: senderOf(listener.sender).role,
    origin: "subagent",
    ...(task.tainted ? { tainted: true } : {}),
  };
  const name = task.child_title ?? task.profile ?? "task";
  const text = `${listener.preface}[sub-agent "${name}" (${task.child_id}) has ${finish.state === "done" ? "finished" : `not finished: ${finish.exitReason}`}]\n\n${truncateContent(finish.text, maxResultBytesFor(1))}`;
  const { sessionId, trust } = listener;
  await enqueueNotice(client, {
    sessionId,
    externalId: `result:${turnId}`,
    priority: priorityOf.subagent,
    parts: [{ type: "text", text }],
    replyTo: listener.replyTo,
    sender,
    mode: task.announce,
    trust,
  });
  wakes.push({
    sessionId,
    priority: priorityOf.subagent,
    ...(task.announce === "steer" ? { steers: trust } : {}),
  });
}
