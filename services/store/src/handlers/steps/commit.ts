// Commits one model call atomically in one statement: results before it, its message, its tool calls, outgoing texts, and the end of the
// turn if it is the closing step.
import type { Bus } from "@parley/bus";
import { type InputOf, type store, voiceChanged, WireError, type OutputOf } from "@parley/contracts";
import type { Database } from "../../db/database.ts";
import { overridesOf } from "../../db/mappers.ts";
import { runOperation, runStatement } from "../../db/operation.ts";
import { rewriteResults } from "./open-calls.ts";
import { announceTexts, enqueueText } from "../outbox/enqueue.ts";
import { notifyParent, publishReady, type ReadyHint } from "../turns/notify.ts";
import { recordReply } from "../voice/replies.ts";
import type { Handlers } from "../handler.ts";

type Input = InputOf<typeof store.stepCommit>;
type Output = OutputOf<typeof store.stepCommit>;

/** `parley.committed_step` */
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
  text: `SELECT * FROM parley.commit_step(${Array.from({ length: 30 }, (_, at) => `$${at + 1}`).join(", ")})`,
};

/** `complete`: the statement is the whole operation, with fence, settlement and operation id. */
function commitStatement(input: Input, complete: boolean) {
  const { usage, finish, toolCalls: calls, note } = input;
  const settled = complete ? (input.settled ?? []) : [];
  return {
    ...commitStep,
    values: [
      complete ? input.opId : null,
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
      input.results,
      settled.map(({ n }) => n),
      settled.map(({ state }) => state),
      settled.map(({ result }) => JSON.stringify(result)),
    ],
  };
}

export const commitHandlers = {
  async stepCommit({ database, bus }, input) {
    const { rewritten = [], outgoing } = input;
    const isOneStatement = rewritten.length === 0 && outgoing.length === 0;
    const row = isOneStatement
      ? await runStatement<CommitRow>(database, "commit", commitStatement(input, true))
      : undefined;
    return row?.turn_found === true ? outputOf(row) : commitInSteps(database, bus, input);
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
