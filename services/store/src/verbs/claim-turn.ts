// Taking a session's next work: a turn that is running, which an earlier leader left or whose claim was never heard of, else the
// first waiting row, which becomes a turn. The leader works on a session in one place only, so what runs is its to resume.
import {
  newId,
  type store,
  WireError,
  type ClaimedTurn,
  type DurableEvent,
  type InputOf,
  type Message,
  type OutputOf,
} from "@parley/contracts";
import type { Database, PoolClient } from "../database.ts";
import { addressOf, stepColumns, toolStepOf, type StepRow } from "../rows.ts";
import { only, perform, type Done, type LockedSession } from "../transaction.ts";
import { endTurn } from "./end-turn.ts";
import { historyBytes, newest } from "./history.ts";

type Claim = OutputOf<typeof store.turnClaim>;
type Input = InputOf<typeof store.turnClaim>;

interface RunningRow {
  id: string;
  attempts: number;
}

const runningTurn = {
  name: "claim-running",
  text: "SELECT id, attempts FROM parley.turns WHERE session_id = $1 AND state = 'running'",
};

interface StartedRow {
  turn_id: string | null;
  inbox_id: string;
  parts: string;
  reply_to: string | null;
  seq: number;
  started_at: string;
}

const startTurn = {
  name: "claim-start",
  text: `
    WITH next AS (
      SELECT id, parts, reply_to FROM parley.inbox
      WHERE session_id = $1 AND state = 'queued'
        AND NOT EXISTS (SELECT FROM parley.turns WHERE session_id = $1 AND state = 'running')
      ORDER BY priority, seq LIMIT 1
    ), turn AS (
      INSERT INTO parley.turns (id, session_id, inbox_id, state, epoch, reply_to)
      SELECT $3, $1, id, 'running', $2, reply_to FROM next
      RETURNING id, started_at
    ), claimed AS (
      UPDATE parley.inbox SET state = 'claimed', turn_id = turn.id FROM turn, next WHERE inbox.id = next.id
    ), session AS (
      UPDATE parley.sessions SET seq = seq + 1, message_count = message_count + 1, updated_at = now() FROM turn
      WHERE sessions.id = $1 RETURNING sessions.seq
    ), message AS (
      INSERT INTO parley.messages (session_id, seq, turn_id, role, parts)
      SELECT $1, session.seq, turn.id, 'user', next.parts FROM session, turn, next
    )
    SELECT turn.id AS turn_id, turn.started_at, next.id AS inbox_id, next.parts, next.reply_to, session.seq FROM turn, next, session`,
};

export function claim(database: Database, input: Input): Promise<Claim> {
  // The lock on the session orders claims, commits and inbox writes; what follows reads what was committed before it.
  return perform<Claim>(
    database,
    { ...input, lockSession: input.sessionId },
    {
      name: "claim",
      async run(client, session) {
        if (session === undefined) throw new WireError("NOT_FOUND", `no session ${input.sessionId}`);
        const started = await start(client, input, session);
        if (started !== undefined) return started;
        const running = (await client.query<RunningRow>({ ...runningTurn, values: [input.sessionId] })).rows[0];
        if (running === undefined) return { result: { status: "empty" } };
        if (running.attempts >= input.maxClaims) return bury(client, input, running.id);
        await client.query(
          "UPDATE parley.turns SET epoch = $2, attempts = attempts + 1, claimed_at = clock_timestamp() WHERE id = $1",
          [running.id, input.epoch],
        );
        return resume(client, input, running.id);
      },
      async replay(client, memo) {
        const { status, turnId, finished } = memo as {
          status: Claim["status"];
          turnId?: string;
          finished?: DurableEvent[];
        };
        if (status === "dead" || turnId === undefined) return { status: "dead", finished: finished ?? [] };
        return {
          ...(await resume(client, input, turnId)).result,
          status: status === "started" ? "started" : "resumed",
        } as Claim;
      },
    },
  );
}

/** Undefined when nothing waits, or a turn is running. */
async function start(client: PoolClient, input: Input, session: LockedSession): Promise<Done<Claim> | undefined> {
  const row = (await client.query<StartedRow>({ ...startTurn, values: [input.sessionId, input.epoch, newId()] }))
    .rows[0];
  if (row === undefined || row.turn_id === null) return undefined;
  const message: Message = {
    seq: row.seq,
    role: "user",
    turnId: row.turn_id,
    parts: JSON.parse(row.parts) as Message["parts"],
    model: null,
    createdAt: row.started_at,
  };
  const turn: ClaimedTurn = {
    turnId: row.turn_id,
    sessionId: input.sessionId,
    sessionKey: session.key,
    replyTo: addressOf(row.reply_to),
    inboxIds: [row.inbox_id],
    attempt: 1,
    nextStep: 1,
    modelSteps: 0,
    openSteps: [],
    cancelRequested: false,
    startedAt: row.started_at,
  };
  // The leader's view is usually one message behind: then nothing needs to be read.
  const history =
    input.knownSeq === session.seq
      ? { messages: [message], gap: false }
      : await newest(client, input.sessionId, { afterSeq: input.knownSeq });
  return {
    result: { status: "started", turn, messages: history.messages, gap: history.gap },
    memo: { status: "started", turnId: row.turn_id },
  };
}

interface ResumedRow {
  session_id: string;
  key: string;
  inbox_id: string;
  reply_to: string | null;
  attempts: number;
  next_step: number;
  model_steps: number;
  cancel_requested: boolean;
  started_at: string;
}

async function resume(client: PoolClient, input: Input, turnId: string): Promise<Done<Claim>> {
  const found = await client.query<ResumedRow>(
    `SELECT t.session_id, s.key, t.inbox_id, t.reply_to, t.attempts, t.next_step, t.model_steps, t.cancel_requested, t.started_at
     FROM parley.turns t JOIN parley.sessions s ON s.id = t.session_id WHERE t.id = $1`,
    [turnId],
  );
  const row = only(found.rows);
  const open = await client.query<StepRow>(
    `SELECT ${stepColumns} FROM parley.steps WHERE turn_id = $1 AND kind = 'tool' AND message_seq IS NULL ORDER BY n`,
    [turnId],
  );
  const turn: ClaimedTurn = {
    turnId,
    sessionId: row.session_id,
    sessionKey: row.key,
    replyTo: addressOf(row.reply_to),
    inboxIds: [row.inbox_id],
    attempt: row.attempts,
    nextStep: row.next_step,
    modelSteps: row.model_steps,
    openSteps: open.rows.map(toolStepOf),
    cancelRequested: row.cancel_requested,
    startedAt: row.started_at,
  };
  // Results that are not in a message yet travel beside the history: together they have to fit one reply.
  const openBytes = open.rows.reduce(
    (sum, step) => sum + Buffer.byteLength(step.input) + Buffer.byteLength(step.result ?? ""),
    0,
  );
  const history = await newest(client, row.session_id, { afterSeq: input.knownSeq, bytes: historyBytes - openBytes });
  return {
    result: { status: "resumed", turn, messages: history.messages, gap: history.gap },
    memo: { status: "resumed", turnId },
  };
}

/** How long a notice about a turn may wait to be sent. */
const noticeExpiryMs = 24 * 60 * 60 * 1000;

/** A turn that took its leader down too often ends here, and its user is told. */
async function bury(client: PoolClient, input: Input, turnId: string): Promise<Done<Claim>> {
  const text = `I could not finish this: it was interrupted ${input.maxClaims} times. I have put it aside; please ask again, perhaps in another way.`;
  const replyTo = addressOf(
    only(
      (await client.query<{ reply_to: string | null }>("SELECT reply_to FROM parley.turns WHERE id = $1", [turnId]))
        .rows,
    ).reply_to,
  );
  const finished = await endTurn(client, {
    turnId,
    epoch: null,
    parts: [],
    model: null,
    unsettled: "Interrupted; the outcome is unknown.",
    outgoing: replyTo === null ? [] : [{ address: replyTo, text, expiresInMs: noticeExpiryMs }],
    finish: { state: "dead", exitReason: "error", text },
  });
  return { result: { status: "dead", finished }, memo: { status: "dead", finished } };
}
