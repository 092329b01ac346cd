// Commits one model call atomically in one statement: results before it, its message, its tool calls, outgoing texts, and the end of the
// turn if it is the closing step.
import type { Bus } from "@parley/bus";
import { type InputOf, type store, voiceChanged, WireError, type OutputOf } from "@parley/contracts";
import type { Database } from "../../db/database.ts";
import { overridesOf } from "../../db/mappers.ts";
import { runInOneWrite, runOperation } from "../../db/operation.ts";
import { rewriteResults } from "./open-calls.ts";
import { announceTexts, enqueueText } from "../outbox/enqueue.ts";
import { notifyParent, publishReady, type ReadyHint } from "../turns/notify.ts";
import { recordReply } from "../voice/replies.ts";
import type { Handlers } from "../handler.ts";

type Input = InputOf<typeof store.stepCommit>;
type Output = OutputOf<typeof store.stepCommit>;

/** Without a turn only `turn_found` and the counts are set. */
interface CommitRow {
  turn_found: boolean;
  results_count: number;
  results_open: number;
  results_seq: number | null;
  message_seq: number;
  finish_seq: number | null;
  at: string;
  input: number;
  output: number;
  cache_read: number;
  cache_write: number;
  cost_micros: number;
  unpriced_calls: number;
  note_seq: number | null;
  queued: boolean;
  steerable: boolean;
  overrides: string | null;
  cancel_requested: boolean;
  has_parent: boolean;
}

const commitStep = {
  name: "step-commit",
  text: `
    WITH turn AS (
      UPDATE parley.turns SET
        next_step = $3 + 1 + $15,
        model_steps = model_steps + 1,
        -- Progress resets the counter: only consecutive claims without progress count.
        attempts = 1,
        input_tokens = input_tokens + $8, output_tokens = output_tokens + $9,
        cache_read_tokens = cache_read_tokens + $10, cache_write_tokens = cache_write_tokens + $11,
        cost_micros = cost_micros + coalesce($20::bigint, 0),
        unpriced_calls = unpriced_calls + CASE WHEN $20::bigint IS NULL THEN 1 ELSE 0 END,
        state = coalesce($12, state), exit_reason = $13, answer = $14,
        finished_at = CASE WHEN $12::text IS NULL THEN NULL ELSE now() END
      WHERE id = $1 AND state = 'running' AND epoch = $2 AND next_step = $3
      RETURNING id, session_id, trust, exclusive, cancel_requested, parent_turn_id, cost_micros, unpriced_calls,
                input_tokens AS input, output_tokens AS output, cache_read_tokens AS cache_read, cache_write_tokens AS cache_write
    ), results AS (
      SELECT n, result FROM parley.steps, turn
      WHERE steps.turn_id = turn.id AND kind = 'tool' AND message_seq IS NULL
    ), counted AS (
      SELECT count(*)::int AS count, count(*) FILTER (WHERE result IS NULL)::int AS open,
             (count(*) > 0)::int AS message, (CASE WHEN $12::text IS NULL THEN 0 ELSE 1 END) AS finish,
             (CASE WHEN $21::text IS NULL THEN 0 ELSE 1 END) AS note
      FROM results
    ), session AS (
      UPDATE parley.sessions SET
        seq = seq + 1 + counted.message + counted.note + counted.finish,
        message_count = message_count + 1 + counted.message + counted.note,
        input_tokens = input_tokens + $8, output_tokens = output_tokens + $9,
        cache_read_tokens = cache_read_tokens + $10, cache_write_tokens = cache_write_tokens + $11,
        cost_micros = sessions.cost_micros + coalesce($20::bigint, 0),
        unpriced_calls = sessions.unpriced_calls + CASE WHEN $20::bigint IS NULL THEN 1 ELSE 0 END,
        prefix_hash = coalesce($22::text, prefix_hash),
        updated_at = now()
      FROM turn, counted WHERE sessions.id = turn.session_id
      RETURNING sessions.id, sessions.seq - counted.finish - counted.note AS message_seq, sessions.overrides
    ), results_message AS (
      INSERT INTO parley.messages (session_id, seq, turn_id, role, parts, tainted)
      SELECT session.id, session.message_seq - 1, $1, 'tool',
             '[' || (SELECT string_agg(result, ',' ORDER BY n) FROM results) || ']', $23::boolean
      FROM session, counted WHERE counted.count > 0 AND counted.open = 0
    ), results_delivered AS (
      UPDATE parley.steps SET message_seq = session.message_seq - 1 FROM session
      WHERE steps.turn_id = $1 AND steps.n IN (SELECT n FROM results)
    ), message AS (
      INSERT INTO parley.messages (session_id, seq, turn_id, role, parts, model, tainted)
      SELECT session.id, session.message_seq, $1, 'assistant', $4, $5, $23::boolean FROM session
    ), note AS (
      INSERT INTO parley.messages (session_id, seq, turn_id, role, parts, tainted)
      SELECT session.id, session.message_seq + 1, $1, 'user', $21, $23::boolean FROM session WHERE $21::text IS NOT NULL
    ), model_step AS (
      INSERT INTO parley.steps (turn_id, n, kind, state, epoch, model, stop_reason, usage, cost_micros, message_seq, finished_at, duration_ms, first_token_ms, request)
      SELECT $1, $3, 'model', 'done', $2, $5, $6, $7, $20::bigint, session.message_seq, now(), $24::int, $25::int, $26::text FROM session
    ), tool_steps AS (
      INSERT INTO parley.steps (turn_id, n, kind, state, epoch, call_id, tool, class, input)
      SELECT $1, $3 + call.ordinality, 'tool', 'intended', $2, call.id, call.tool, call.class, call.input
      FROM session, unnest($16::text[], $17::text[], $18::text[], $19::text[]) WITH ORDINALITY AS call(id, tool, class, input, ordinality)
    ), finish AS (
      INSERT INTO parley.events (session_id, seq, type, turn_id)
      SELECT session.id, session.message_seq + 1, 'turn.finished', $1 FROM session WHERE $12::text IS NOT NULL
    ), inbox AS (
      UPDATE parley.inbox SET state = CASE $12::text WHEN 'cancelled' THEN 'cancelled' ELSE 'done' END FROM turn
      WHERE inbox.turn_id = turn.id AND $12::text IS NOT NULL
    ), outcome AS (
      SELECT EXISTS (SELECT FROM turn) AS turn_found, counted.count AS results_count, counted.open AS results_open,
             CASE WHEN counted.count > 0 THEN session.message_seq - 1 END AS results_seq,
             session.message_seq, CASE WHEN counted.finish = 1 THEN session.message_seq + 1 END AS finish_seq, now() AS at,
             CASE WHEN counted.note = 1 THEN session.message_seq + 1 END AS note_seq,
             turn.cancel_requested, turn.input, turn.output, turn.cache_read, turn.cache_write, turn.cost_micros, turn.unpriced_calls,
             session.overrides, turn.parent_turn_id IS NOT NULL AS has_parent,
             counted.finish = 1 AND EXISTS (
               SELECT FROM parley.inbox, turn
               WHERE inbox.session_id = turn.session_id AND inbox.state = 'queued' AND inbox.ready_at <= now()
             ) AS queued,
             counted.finish = 0 AND EXISTS (
               SELECT FROM parley.inbox, turn
               WHERE inbox.session_id = turn.session_id AND inbox.state = 'queued' AND inbox.mode = 'steer'
                 AND inbox.trust = turn.trust AND inbox.parent_turn_id IS NULL AND NOT inbox.exclusive AND NOT turn.exclusive
             ) AS steerable
      FROM counted LEFT JOIN session ON true LEFT JOIN turn ON true
    ), remembered AS (
      INSERT INTO parley.ops (op_id, result)
      SELECT $27::uuid, CASE WHEN turn_found AND results_open = 0 AND results_count = $28 AND NOT (finish_seq IS NOT NULL AND has_parent)
        AND EXISTS (SELECT FROM parley.leadership WHERE name = 'agent-core' AND epoch = $2) THEN row_to_json(outcome)::text END
      FROM outcome WHERE $27::uuid IS NOT NULL
    )
    SELECT * FROM outcome`,
};

/**
 * `complete`: the statement is the whole operation. It then also remembers the operation, and fails where it may not be committed: for a
 * stale epoch, for another step or other results than the leader's, and where the turn's end has to be reported to its parent.
 */
function commitStatement(input: Input, complete: boolean) {
  const { usage, finish, toolCalls: calls, note } = input;
  return {
    ...commitStep,
    values: [
      input.turnId,
      input.epoch,
      input.n,
      JSON.stringify(input.parts),
      input.model,
      input.stopReason,
      JSON.stringify(usage),
      usage.inputTokens,
      usage.outputTokens,
      usage.cacheReadTokens,
      usage.cacheWriteTokens,
      finish?.state ?? null,
      finish?.exitReason ?? null,
      finish === null ? null : JSON.stringify(finish.text),
      calls.length,
      calls.map((call) => call.callId),
      calls.map((call) => call.tool),
      calls.map((call) => call.class),
      calls.map((call) => JSON.stringify(call.input)),
      input.costMicros ?? null,
      note === undefined || finish !== null || calls.length > 0 ? null : JSON.stringify(note),
      input.prefixHash ?? null,
      input.tainted === true ? true : null,
      input.timing?.durationMs ?? null,
      input.timing?.firstTokenMs ?? null,
      input.request === undefined ? null : JSON.stringify(input.request),
      complete ? input.opId : null,
      input.results,
    ],
  };
}

export const commitHandlers = {
  async stepCommit({ database, bus }, input) {
    const { rewritten = [], outgoing } = input;
    const isOneStatement = rewritten.length === 0 && outgoing.length === 0;
    const row = isOneStatement
      ? await runInOneWrite<CommitRow>(database, input, "commit", commitStatement(input, true))
      : undefined;
    return row === undefined ? commitInSteps(database, bus, input) : outputOf(row);
  },
} satisfies Partial<Handlers>;

/** Commits a step with more than one statement, or throws why it cannot be committed. */
async function commitInSteps(database: Database, bus: Bus, input: Input): Promise<Output> {
  const wakes: ReadyHint[] = [];
  let speaks = false;
  const statement = commitStatement(input, false);
  // Rewritten results must be stored before the statement reads them.
  const rewrites = (input.rewritten ?? []).length > 0;
  const output = await runOperation<Output>(database, input, {
    name: "commit",
    first: rewrites ? undefined : statement,
    async run(client, _session, rows) {
      const { finish } = input;
      await rewriteResults(client, input.turnId, input.rewritten);
      const [row] = (rewrites ? (await client.query(statement)).rows : rows) as CommitRow[];
      if (row === undefined || !row.turn_found) {
        throw new WireError(
          "CONFLICT",
          `turn ${input.turnId}: step ${input.n} is not the next one, or another leader owns the turn`,
        );
      }
      if (row.results_open > 0 || row.results_count !== input.results) {
        throw new WireError(
          "CONFLICT",
          `turn ${input.turnId}: ${row.results_count} results (${row.results_open} open), but the leader has ${input.results}`,
        );
      }
      for (const outgoing of input.outgoing) await enqueueText(client, input.turnId, outgoing);
      if (overridesOf(row.overrides).voiceReplies === true)
        speaks = await recordReply(client, input.turnId, input.outgoing);
      if (finish !== null && row.has_parent) await notifyParent(client, input.turnId, finish, wakes);
      return { result: outputOf(row), memo: row };
    },
    // Earlier releases stored the output.
    replay: async (_client, memo) =>
      "messageSeq" in (memo as object) ? (memo as Output) : outputOf(memo as CommitRow),
  });
  publishReady(bus, wakes);
  announceTexts(bus, input.outgoing);
  if (speaks) bus.publish(voiceChanged, {});
  return output;
}

function outputOf(row: CommitRow): Output {
  return {
    resultsSeq: row.results_seq,
    messageSeq: row.message_seq,
    noteSeq: row.note_seq,
    finishSeq: row.finish_seq,
    usage: {
      inputTokens: row.input,
      outputTokens: row.output,
      cacheReadTokens: row.cache_read,
      cacheWriteTokens: row.cache_write,
    },
    cost: { micros: row.cost_micros, unpricedCalls: row.unpriced_calls },
    queued: row.queued,
    steerable: row.steerable,
    overrides: overridesOf(row.overrides),
    cancelRequested: row.cancel_requested,
    at: new Date(row.at).toISOString(),
  };
}
