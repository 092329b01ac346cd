// Questions to people that a tool call waits for: stored in one commit, answered by the next message in the session.
import type { Bus } from "@parley/bus";
import {
  answererRole,
  callToken,
  inboxReady,
  isUntrustedInput,
  priorityOf,
  store,
  textOf,
  WireError,
  type Attachment,
  type OutputOf,
  type Part,
  type ToolResult,
} from "@parley/contracts";
import type { Database, PoolClient } from "../../db/database.ts";
import { addTurnReferences } from "../../blobs/references.ts";
import { durationOf, senderOf, stepColumns, toolStepOf, type StepRow } from "../../db/mappers.ts";
import { singleRow, runOperation, runTransaction } from "../../db/operation.ts";
import { deliversTo, isJobs } from "./ask.ts";
import { lockTurn } from "../turns/end.ts";
import { announceTexts, enqueueText } from "../outbox/enqueue.ts";
import { unpark } from "../turns/notify.ts";
import { SessionLog } from "../sessions/log.ts";
import type { Handlers } from "../handler.ts";

interface Body {
  question: string;
  options: string[];
}

export const questionHandlers = {
  async questionAsk({ database, bus }, input) {
    const output = await runOperation<OutputOf<typeof store.questionAsk>>(database, input, {
      name: "question_ask",
      async run(client) {
        const { turnId, n, question, options } = input;
        const turn = await lockTurn(client, turnId, input.epoch);
        const inserted = await client.query<{ expires_at: string }>(
          `INSERT INTO parley.questions (turn_id, n, session_id, trust, body, expires_at)
           VALUES ($1, $2, $3, $4, $5, now() + $6 * interval '1 millisecond')
           ON CONFLICT (turn_id, n) DO NOTHING RETURNING expires_at`,
          [
            turnId,
            n,
            turn.sessionId,
            answererRole(turn.trust) ?? turn.trust,
            JSON.stringify({ question, options }),
            input.expiresInMs,
          ],
        );
        const row = inserted.rows[0];
        if (row === undefined) return { result: { ...(await current(client, turnId, n)), seq: null } };
        const { rows } = await client.query<StepRow>(
          `UPDATE parley.steps SET state = 'running', runner = 'agent-core', starts = starts + 1, started_at = now(), epoch = $3
           WHERE turn_id = $1 AND n = $2 AND kind = 'tool' AND result IS NULL RETURNING ${stepColumns}`,
          [turnId, n, input.epoch],
        );
        if (rows[0] === undefined) throw new WireError("CONFLICT", `step ${n} of turn ${turnId} is settled`);
        const step = toolStepOf(rows[0]);
        const log = new SessionLog(client, turn.sessionId, turnId);
        const seq = await log.event("question.asked", {
          callId: step.callId,
          question,
          options,
          expiresAt: row.expires_at,
        });
        for (const outgoing of input.outgoing) await enqueueText(client, turnId, outgoing);
        return { result: { step, expiresAt: row.expires_at, seq }, memo: { seq } };
      },
      async replay(client, memo) {
        const { seq } = memo as { seq: number };
        return { ...(await current(client, input.turnId, input.n)), seq };
      },
    });
    announceTexts(bus, input.outgoing);
    return output;
  },
} satisfies Partial<Handlers>;

async function current(client: PoolClient, turnId: string, n: number) {
  const question = await client.query<{ expires_at: string }>(
    "SELECT expires_at FROM parley.questions WHERE turn_id = $1 AND n = $2",
    [turnId, n],
  );
  const step = await client.query<StepRow>(
    `SELECT ${stepColumns} FROM parley.steps WHERE turn_id = $1 AND n = $2 AND kind = 'tool'`,
    [turnId, n],
  );
  return { step: toolStepOf(singleRow(step.rows)), expiresAt: singleRow(question.rows).expires_at };
}

/**
 * Makes a queued message the answer to the oldest open question that it may answer and that was asked before it. The message then
 * belongs to the question's turn and starts no turn. Returns false when it answers nothing, or not yet because files of it are missing.
 */
export async function answerWith(database: Database, bus: Bus, inboxId: string): Promise<boolean> {
  const answered = await runTransaction(database, async (client) => {
    const waiting = await client.query<{ parts: string; sender: string }>(
      // Somebody else wrote a forwarded text, so it is never an answer.
      `SELECT parts, sender FROM parley.inbox WHERE id = $1 AND state = 'queued' AND files_due IS NULL
         AND sender::jsonb ->> 'origin' = 'user' AND sender::jsonb -> 'forwarded' IS NULL FOR UPDATE`,
      [inboxId],
    );
    const row = waiting.rows[0];
    if (row === undefined) return undefined;
    const open = await client.query<{ turn_id: string; n: number; session_id: string; body: string; raised: boolean }>(
      // Lock order: the step before its question, so that a concurrent settlement and this answer see each other.
      // Questions of settled calls (stopped turns) and of lost runners are skipped.
      `SELECT q.turn_id, q.n, q.session_id, q.body, q.raised_as IS NOT NULL AS raised FROM parley.questions q
       JOIN parley.turns t ON t.id = q.turn_id
       JOIN parley.inbox i ON i.id = $1 AND NOT i.exclusive AND i.trust = q.trust AND i.received_at >= q.asked_at
         AND CASE WHEN ${isJobs} THEN ${deliversTo("i.reply_to")}
             -- A thread may serve several conversations, and people other than owners answer only in their own.
             ELSE i.session_id = q.session_id AND (i.trust = 'owner' OR t.reply_to IS NULL OR ${deliversTo("i.reply_to")}) END
       JOIN parley.steps s ON s.turn_id = q.turn_id AND s.n = q.n AND s.result IS NULL
       WHERE q.state = 'open' AND q.expires_at > now() AND (q.held_until IS NULL OR q.held_until > now())
       ORDER BY q.asked_at LIMIT 1 FOR UPDATE OF s FOR UPDATE OF q`,
      [inboxId],
    );
    const question = open.rows[0];
    if (question === undefined) return undefined;
    const { turn_id: turnId, n, raised } = question;
    const answer = answerOf(row);
    const taken = raised
      ? await notifyRunner(client, question, answer, inboxId)
      : await settleCall(client, question, answer, JSON.parse(question.body) as Body);
    if (!taken) return undefined;
    // The message can belong to another session, whose files the call could not read.
    await addTurnReferences(
      client,
      turnId,
      answer.files.map(({ sha256 }) => sha256),
    );
    await client.query("UPDATE parley.inbox SET state = 'claimed', turn_id = $2 WHERE id = $1", [inboxId, turnId]);
    return { sessionId: question.session_id, turnId, n, raised };
  });
  if (answered === undefined) return false;
  const { sessionId, turnId, n, raised } = answered;
  if (raised) bus.publish(store.questionAnswered, { turnId, n }, { call: callToken(turnId, n) });
  else bus.publish(inboxReady, { sessionId, priority: priorityOf.user });
  return true;
}

interface OpenQuestion {
  turn_id: string;
  n: number;
}

interface Answer {
  text: string;
  files: Attachment[];
  /** The files are untrusted content because of their sender. */
  untrusted: boolean;
}

function answerOf(row: { parts: string; sender: string }): Answer {
  const parts = JSON.parse(row.parts) as Part[];
  const blobs = parts.filter((part) => part.type === "blob");
  return {
    text: textOf(parts),
    files: blobs.map(({ sha256, mediaType, name, bytes }) => ({ sha256, mediaType, name, bytes })),
    untrusted: blobs.length > 0 && isUntrustedInput(senderOf(row.sender), blobs),
  };
}

/** Stores the answer for the runner of the call, which builds the call's result from it. */
async function notifyRunner(
  client: PoolClient,
  { turn_id: turnId, n }: OpenQuestion,
  { text, files }: Answer,
  inboxId: string,
): Promise<boolean> {
  const lines = files.map(({ name, mediaType, sha256 }) => `[attached: ${name}, ${mediaType}, id ${sha256}]`);
  const written = text.slice(0, store.maxQuestionCharacters).toWellFormed();
  await client.query(
    "UPDATE parley.questions SET state = 'answered', answer = $3, answered_by = $4, fetched = false WHERE turn_id = $1 AND n = $2",
    [turnId, n, [written, ...lines].filter((line) => line !== "").join("\n"), inboxId],
  );
  return true;
}

/** Settles the call with the answer. Returns false when the call already has a result. */
async function settleCall(
  client: PoolClient,
  { turn_id: turnId, n }: OpenQuestion,
  { text, files, untrusted }: Answer,
  body: Body,
): Promise<boolean> {
  const step = await client.query<StepRow>(
    `SELECT ${stepColumns} FROM parley.steps WHERE turn_id = $1 AND n = $2 AND kind = 'tool' AND result IS NULL FOR UPDATE`,
    [turnId, n],
  );
  const open = step.rows[0];
  await client.query("UPDATE parley.questions SET state = $3 WHERE turn_id = $1 AND n = $2", [
    turnId,
    n,
    open === undefined ? "over" : "answered",
  ]);
  if (open === undefined) return false;
  const { callId: id, tool: name, startedAt } = toolStepOf(open);
  const isOnlyFiles = text === "" && files.length > 0;
  const content = isOnlyFiles
    ? "The person answered with the attached files."
    : `The person answered: ${chosen(text, body)}`;
  const result: ToolResult = {
    type: "tool_result",
    id,
    name,
    content,
    isError: false,
    ...(files.length === 0 ? {} : { attachments: files }),
    ...(untrusted ? { untrusted } : {}),
    ...durationOf(startedAt),
  };
  await client.query(
    "UPDATE parley.steps SET state = 'done', result = $3, finished_at = now() WHERE turn_id = $1 AND n = $2",
    [turnId, n, JSON.stringify(result)],
  );
  await unpark(client, turnId);
  return true;
}

/** A number selects the option at that position. */
function chosen(answer: string, { options }: Body): string {
  const option = options[Number(answer.trim()) - 1];
  return /^\d+$/.test(answer.trim()) && option !== undefined ? option : answer;
}
