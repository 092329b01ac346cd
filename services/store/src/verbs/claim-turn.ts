// Taking a session's next work: a turn that is running, which an earlier leader left or whose claim was never heard of, else the
// first waiting row, which becomes a turn. The leader works on a session in one place only, so what runs is its to resume.
import type { Bus } from "@parley/bus";
import {
  newId,
  noCost,
  noUsage,
  type store,
  WireError,
  type ClaimedTurn,
  type Cost,
  type DurableEvent,
  type InputOf,
  type Message,
  type OutputOf,
  type SessionState,
  type TaskMode,
} from "@parley/contracts";
import type { Database, PoolClient } from "../database.ts";
import { addressOf, openSteps, otherAddresses, senderOf, sessionStateOf, type SessionStateRow } from "../rows.ts";
import { only, perform, type Done, type LockedSession } from "../transaction.ts";
import { endTurn } from "./end-turn.ts";
import { historyBytes, newest } from "./history.ts";
import { wake, type Wake } from "./report.ts";
import { stopOrphans } from "./turns.ts";

type Claim = OutputOf<typeof store.turnClaim>;
type Input = InputOf<typeof store.turnClaim>;

interface RunningRow {
  id: string;
  attempts: number;
  asleep: boolean;
}

const runningTurn = {
  name: "claim-running",
  text: `SELECT id, attempts, parked AND coalesce(wake_at > now(), true) AS asleep
         FROM parley.turns WHERE session_id = $1 AND state = 'running'`,
};

interface StartedRow extends SessionStateRow {
  turn_id: string;
  started_at: string;
  trust: string;
  trace: string | null;
  parent_turn_id: string | null;
  parent_step: number | null;
  parent_mode: TaskMode | null;
  root_turn_id: string | null;
  inbox_id: string;
  parts: string;
  sender: string;
  reply_to: string | null;
  seq: number;
}

/** What may be taken into one turn at once; more waits and joins it later. */
const maxRows = 50;

// The next row by priority, which gains a step for each stretch of waiting, and with it what belongs together: everything of
// equal trust that may steer, or what one sender has said in a coalescing window.
const startTurn = {
  name: "claim-start",
  text: `
    WITH next AS (
      SELECT id, mode, trust, sender, reply_to, parent_turn_id, parent_step, parent_mode, trace FROM parley.inbox
      WHERE session_id = $1 AND state = 'queued' AND ready_at <= now()
        AND NOT EXISTS (SELECT FROM parley.turns WHERE session_id = $1 AND state = 'running')
      ORDER BY priority - floor(extract(epoch FROM now() - received_at) / $4), seq LIMIT 1
    ), taken AS (
      SELECT i.id, i.parts, i.reply_to, i.sender, row_number() OVER (ORDER BY i.seq) AS nth
      FROM parley.inbox i, next
      WHERE i.session_id = $1 AND i.state = 'queued' AND (
        i.id = next.id OR (
          next.parent_turn_id IS NULL AND i.parent_turn_id IS NULL AND i.mode = next.mode AND i.trust = next.trust
          AND (next.mode = 'steer' OR (next.mode = 'coalesce' AND i.sender = next.sender))
        )
      )
      ORDER BY i.seq LIMIT ${maxRows}
    ), turn AS (
      INSERT INTO parley.turns (id, session_id, inbox_id, state, epoch, reply_to, trust, parent_turn_id, parent_step, parent_mode, root_turn_id)
      SELECT $3, $1, id, 'running', $2, reply_to, trust, parent_turn_id, parent_step, parent_mode,
             (SELECT coalesce(p.root_turn_id, p.id) FROM parley.turns p WHERE p.id = next.parent_turn_id)
      FROM next
      RETURNING id, started_at, trust, parent_turn_id, parent_step, parent_mode, root_turn_id
    ), claimed AS (
      UPDATE parley.inbox SET state = 'claimed', turn_id = turn.id FROM turn, taken WHERE inbox.id = taken.id
    ), session AS (
      UPDATE parley.sessions SET
        seq = seq + (SELECT count(*) FROM taken), message_count = message_count + (SELECT count(*) FROM taken), updated_at = now()
      FROM turn WHERE sessions.id = $1
      RETURNING sessions.seq - (SELECT count(*) FROM taken) AS before, view, overrides, profile, parent_id, depth, prefix_hash
    ), message AS (
      INSERT INTO parley.messages (session_id, seq, turn_id, role, parts, sender)
      SELECT $1, session.before + taken.nth, turn.id, 'user', taken.parts, taken.sender FROM session, turn, taken
    )
    SELECT turn.id AS turn_id, turn.started_at, turn.trust, turn.parent_turn_id, turn.parent_step, turn.parent_mode, turn.root_turn_id,
           next.trace, taken.id AS inbox_id, taken.parts, taken.sender, taken.reply_to, session.before + taken.nth AS seq,
           session.view, session.overrides, session.profile, session.parent_id, session.depth, session.prefix_hash
    FROM turn, next, taken, session ORDER BY taken.nth`,
};

/** Seconds of waiting that lift a row by one step of priority, where the leader does not say. */
const defaultAgeingSeconds = 300;

export async function claim(database: Database, bus: Bus, input: Input): Promise<Claim> {
  // The lock on the session orders claims, commits and inbox writes; what follows reads what was committed before it.
  const wakes: Wake[] = [];
  const claimed = perform<Claim>(
    database,
    { ...input, lockSession: input.sessionId },
    {
      name: "claim",
      async run(client, session) {
        if (session === undefined) throw new WireError("NOT_FOUND", `no session ${input.sessionId}`);
        const started = await start(client, input, session);
        if (started !== undefined) return started;
        const running = (await client.query<RunningRow>({ ...runningTurn, values: [input.sessionId] })).rows[0];
        if (running === undefined || running.asleep) return { result: { status: "empty" } };
        if (running.attempts >= input.maxClaims) return bury(client, input, running.id, wakes);
        await client.query(
          `UPDATE parley.turns SET epoch = $2, attempts = attempts + 1, claimed_at = clock_timestamp(), parked = false, wake_at = NULL
           WHERE id = $1`,
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
  const result = await claimed.finally(() => wake(bus, wakes));
  if (result.status === "dead") {
    const ended = result.finished.flatMap((event) => (event.type === "turn.finished" ? [event.turnId] : []));
    await stopOrphans(database, bus, ended);
  }
  return result;
}

/** Undefined when nothing waits, or a turn is running. */
async function start(client: PoolClient, input: Input, session: LockedSession): Promise<Done<Claim> | undefined> {
  const values = [input.sessionId, input.epoch, newId(), input.ageingSeconds ?? defaultAgeingSeconds];
  const { rows } = await client.query<StartedRow>({ ...startTurn, values });
  const first = rows[0];
  if (first === undefined) return undefined;
  const state = sessionStateOf(first);
  const messages = rows.map<Message>((row) => ({
    seq: row.seq,
    role: "user",
    turnId: row.turn_id,
    parts: JSON.parse(row.parts) as Message["parts"],
    model: null,
    from: senderOf(row.sender),
    createdAt: row.started_at,
  }));
  const turn: ClaimedTurn = {
    turnId: first.turn_id,
    sessionId: input.sessionId,
    sessionKey: session.key,
    replyTo: addressOf(first.reply_to),
    alsoTo: otherAddresses(
      first.reply_to,
      rows.map((row) => row.reply_to),
    ),
    inboxIds: rows.map((row) => row.inbox_id),
    trust: first.trust,
    root:
      first.root_turn_id === null
        ? { turnId: first.turn_id, trust: first.trust, replyTo: addressOf(first.reply_to) }
        : await rootOf(client, first.root_turn_id),
    parent: parentOf(first),
    usage: noUsage,
    cost: noCost,
    treeCost: first.root_turn_id === null ? noCost : await treeCost(client, first.root_turn_id),
    trace: first.trace,
    attempt: 1,
    nextStep: 1,
    modelSteps: 0,
    openSteps: [],
    cancelRequested: false,
    startedAt: first.started_at,
  };
  // The leader's view is usually one message behind: then nothing needs to be read.
  const history =
    rows.length === 1 && input.knownSeq === session.seq
      ? { messages, gap: false }
      : await newest(client, input.sessionId, { afterSeq: shownAfter(input, state) });
  return {
    result: {
      status: "started",
      turn,
      session: state,
      steerable: rows.length === maxRows,
      messages: history.messages,
      gap: history.gap,
    },
    memo: { status: "started", turnId: first.turn_id },
  };
}

/** What the leader knows, and what its model is not shown any more, need not be read. */
function shownAfter({ knownSeq }: Input, { view }: SessionState): number {
  return Math.max(knownSeq, view === null ? 0 : view.fromSeq - 1);
}

function parentOf(row: { parent_turn_id: string | null; parent_step: number | null; parent_mode: TaskMode | null }) {
  const { parent_turn_id: turnId, parent_step: n, parent_mode: mode } = row;
  return turnId === null || n === null || mode === null ? null : { turnId, n, mode };
}

async function rootOf(client: PoolClient, turnId: string): Promise<ClaimedTurn["root"]> {
  const { rows } = await client.query<{ trust: string; reply_to: string | null }>(
    "SELECT trust, reply_to FROM parley.turns WHERE id = $1",
    [turnId],
  );
  const { trust, reply_to: replyTo } = only(rows);
  return { turnId, trust, replyTo: addressOf(replyTo) };
}

async function treeCost(client: PoolClient, rootTurnId: string): Promise<Cost> {
  const { rows } = await client.query<Cost>(
    `SELECT coalesce(sum(cost_micros), 0)::bigint AS micros, coalesce(sum(unpriced_calls), 0)::int AS "unpricedCalls"
     FROM parley.turns WHERE id = $1 OR root_turn_id = $1`,
    [rootTurnId],
  );
  return only(rows);
}

interface ResumedRow extends SessionStateRow {
  session_id: string;
  key: string;
  inbox_id: string;
  reply_to: string | null;
  trust: string;
  parent_turn_id: string | null;
  parent_step: number | null;
  parent_mode: TaskMode | null;
  root_turn_id: string | null;
  attempts: number;
  next_step: number;
  model_steps: number;
  cancel_requested: boolean;
  started_at: string;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  cost_micros: number;
  unpriced_calls: number;
}

async function resume(client: PoolClient, input: Input, turnId: string): Promise<Done<Claim>> {
  const found = await client.query<ResumedRow>(
    `SELECT t.*, s.key, s.view, s.overrides, s.profile, s.parent_id, s.depth, s.prefix_hash
     FROM parley.turns t JOIN parley.sessions s ON s.id = t.session_id WHERE t.id = $1`,
    [turnId],
  );
  const row = only(found.rows);
  const openCalls = await openSteps(client, turnId);
  const taken = await client.query<{ id: string; reply_to: string | null; trace: string | null }>(
    "SELECT id, reply_to, trace FROM parley.inbox WHERE turn_id = $1 ORDER BY seq",
    [turnId],
  );
  const state = sessionStateOf(row);
  const turn: ClaimedTurn = {
    turnId,
    sessionId: row.session_id,
    sessionKey: row.key,
    replyTo: addressOf(row.reply_to),
    alsoTo: otherAddresses(
      row.reply_to,
      taken.rows.map((each) => each.reply_to),
    ),
    inboxIds: taken.rows.map((each) => each.id),
    trust: row.trust,
    root: await rootOf(client, row.root_turn_id ?? turnId),
    parent: parentOf(row),
    usage: {
      inputTokens: row.input_tokens,
      outputTokens: row.output_tokens,
      cacheReadTokens: row.cache_read_tokens,
      cacheWriteTokens: row.cache_write_tokens,
    },
    cost: { micros: row.cost_micros, unpricedCalls: row.unpriced_calls },
    treeCost: await treeCost(client, row.root_turn_id ?? turnId),
    trace: taken.rows.find((each) => each.trace !== null)?.trace ?? null,
    attempt: row.attempts,
    nextStep: row.next_step,
    modelSteps: row.model_steps,
    openSteps: openCalls,
    cancelRequested: row.cancel_requested,
    startedAt: row.started_at,
  };
  const steerable = await client.query(
    "SELECT FROM parley.inbox WHERE session_id = $1 AND state = 'queued' AND mode = 'steer' AND trust = $2 AND parent_turn_id IS NULL LIMIT 1",
    [row.session_id, row.trust],
  );
  // Results that are not in a message yet travel beside the history: together they have to fit one reply.
  const openBytes = openCalls.reduce(
    (sum, step) => sum + Buffer.byteLength(step.input) + Buffer.byteLength(step.result?.content ?? ""),
    0,
  );
  const history = await newest(client, row.session_id, {
    afterSeq: shownAfter(input, state),
    bytes: historyBytes - openBytes,
  });
  return {
    result: {
      status: "resumed",
      turn,
      session: state,
      steerable: steerable.rowCount === 1,
      messages: history.messages,
      gap: history.gap,
    },
    memo: { status: "resumed", turnId },
  };
}

/** How long a notice about a turn may wait to be sent. */
const noticeExpiryMs = 24 * 60 * 60 * 1000;

/** A turn that took its leader down too often ends here, and its user is told. */
async function bury(client: PoolClient, input: Input, turnId: string, wakes: Wake[]): Promise<Done<Claim>> {
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
    withhold: input.withhold === undefined ? undefined : { steps: null, text: input.withhold },
    unsettled: "Interrupted; the outcome is unknown.",
    outgoing: replyTo === null ? [] : [{ address: replyTo, text, expiresInMs: noticeExpiryMs }],
    finish: { state: "dead", exitReason: "error", text },
    wakes,
  });
  return { result: { status: "dead", finished }, memo: { status: "dead", finished } };
}
