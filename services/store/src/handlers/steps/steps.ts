// Tool steps: claimed before they start if their class requires it, and settled once by the claimer or the leader.
import type { Bus } from "@parley/bus";
import {
  priorityOf,
  stepSettled,
  type store,
  voiceChanged,
  WireError,
  type Grant,
  type HookOutcome,
  type InputOf,
  type ToolStep,
} from "@parley/contracts";
import { hashesOf, addTurnReferences, requireReferred } from "../../blobs/references.ts";
import type { Database, PoolClient } from "../../db/database.ts";
import { hashOf, operationOf } from "../../grants.ts";
import { stepColumns, toolStepOf, type StepRow } from "../../db/mappers.ts";
import { runOperation } from "../../db/operation.ts";
import { announceTexts, enqueueText } from "../outbox/enqueue.ts";
import { lockTurn } from "../turns/end.ts";
import { unpark, publishReady, type ReadyHint } from "../turns/notify.ts";
import { requeueUndelivered, hasRaisedQuestion } from "../questions/requeue.ts";
import { recordReply } from "../voice/replies.ts";
import { withGrant, type Handlers } from "../handler.ts";

interface Key {
  turnId: string;
  n: number;
}

export const stepHandlers = {
  /** Settlement by the leader, fenced by its epoch. */
  async stepSettle({ database, bus }, input) {
    const output = await settleOnce(database, bus, input, null);
    announceTexts(bus, input.outgoing);
    return output;
  },

  stepAuthorize({ database }, input) {
    return runOperation(database, input, {
      name: "step_authorize",
      async run(client) {
        const { turnId, n, epoch, authorization } = input;
        await lockTurn(client, turnId, epoch);
        const { rowCount } = await client.query(
          `UPDATE parley.steps SET authorization_json = $3 WHERE turn_id = $1 AND n = $2 AND kind = 'tool' AND result IS NULL`,
          [turnId, n, JSON.stringify(authorization)],
        );
        if (rowCount !== 1) throw new WireError("CONFLICT", `step ${n} of turn ${turnId} is settled`);
        return { result: {}, memo: {} };
      },
      replay: async () => ({}),
    });
  },

  /** `intended → running`. A running `idempotent` step may be claimed again: the same key has one effect. */
  stepClaim: withGrant(({ database }, grant, input) => {
    return runOperation(
      database,
      { opId: operationOf(grant, input.opId), epoch: input.epoch },
      {
        name: "step_claim",
        async run(client) {
          const { rows } = await client.query<StepRow>({
            name: "step-claim",
            text: `
            UPDATE parley.steps SET state = 'running', runner = $3, starts = starts + 1, started_at = now(), epoch = $4,
              claim_hashes = array_append(array_remove(claim_hashes, $5), $5)
            WHERE turn_id = $1 AND n = $2 AND kind = 'tool' AND (state = 'intended' OR (state = 'running' AND class = 'idempotent'))
            RETURNING ${stepColumns}`,
            values: [grant.turnId, grant.n, input.runner, input.epoch, input.claimHash],
          });
          const granted = rows[0] !== undefined;
          const row = rows[0] ?? (await read(client, grant));
          return { result: { granted, step: toolStepOf(row) }, memo: { granted } };
        },
        replay: async (client, memo) => ({
          granted: (memo as { granted: boolean }).granted,
          step: toolStepOf(await read(client, grant)),
        }),
      },
    );
  }),

  /** Settlement by the tool-runner of the call: only it has the secret of the claim, and its result may refer only to its session's content. */
  callSettle: withGrant(({ database, bus }, grant, { opId, claim: secret, state, result }) => {
    const { turnId, n } = grant;
    const settlement = { opId: operationOf(grant, opId), epoch: null, turnId, n, state, result };
    return settleOnce(database, bus, settlement, { grant, claimHash: hashOf(secret) });
  }),
} satisfies Partial<Handlers>;

/** A tool-runner's proof of its right to settle; the leader's proof is its epoch. */
interface Claimant {
  grant: Grant;
  claimHash: string;
}

interface Settlement extends Omit<InputOf<typeof store.stepSettle>, "epoch"> {
  epoch: number | null;
}

async function settleOnce(
  database: Database,
  bus: Bus,
  input: Settlement,
  claimant: Claimant | null,
): Promise<{ step: ToolStep }> {
  const wakes: ReadyHint[] = [];
  let speaks = false;
  const output = await runOperation(database, input, {
    name: "settle",
    async run(client) {
      if (claimant !== null) await requireReferred(client, claimant.grant, hashesOf(input.result));
      const { rows } = await client.query<StepRow & { parked: boolean; asked: boolean }>({
        name: "step-settle",
        text: `
          UPDATE parley.steps SET state = $3, result = $4, finished_at = now()
          WHERE turn_id = $1 AND n = $2 AND kind = 'tool' AND state IN ('intended', 'running')
            AND ($5::text IS NULL OR (call_id = $5 AND (state = 'intended' OR $6 = ANY (claim_hashes))))
          RETURNING ${stepColumns}, parley.is_parked(turn_id) AS parked, ${hasRaisedQuestion} AS asked`,
        values: [
          input.turnId,
          input.n,
          input.state,
          JSON.stringify(input.result),
          claimant === null ? null : input.result.id,
          claimant?.claimHash ?? null,
        ],
      });
      const step = toolStepOf(rows[0] ?? (await read(client, input)));
      if (rows[0] === undefined && step.result === null) throw notSettled(step, input);
      if (rows[0] !== undefined) {
        await addTurnReferences(client, input.turnId, hashesOf(input.result));
        for (const outgoing of input.outgoing ?? []) await enqueueText(client, input.turnId, outgoing);
        speaks = await recordReply(client, input.turnId, input.outgoing ?? []);
        if (rows[0].asked) await requeueUndelivered(client, input.turnId, input.n, wakes);
        // A later parking waits for the step's lock and finds its result.
        const sessionId = rows[0].parked ? await unpark(client, input.turnId) : undefined;
        if (sessionId !== undefined) wakes.push({ sessionId, priority: priorityOf.user });
      }
      const marked = input.hookOutcome === undefined ? undefined : await markHooks(client, input, input.hookOutcome);
      return { result: { step: marked ?? step }, memo: {} };
    },
    replay: async (client) => ({ step: toolStepOf(await read(client, input)) }),
  });
  publishReady(bus, wakes);
  if (speaks) bus.publish(voiceChanged, {});
  bus.publish(stepSettled, { turnId: input.turnId, n: input.n }, { turn: input.turnId });
  return output;
}

/** Replaces a settled result by what its hooks returned, once and before a message contains it. */
async function markHooks(
  client: PoolClient,
  { turnId, n, result }: Settlement,
  outcome: HookOutcome,
): Promise<ToolStep | undefined> {
  const { rows } = await client.query<StepRow>(
    `UPDATE parley.steps SET result = $3, hook_outcome = $4
     WHERE turn_id = $1 AND n = $2 AND kind = 'tool' AND result IS NOT NULL AND message_seq IS NULL AND hook_outcome IS NULL
     RETURNING ${stepColumns}`,
    [turnId, n, JSON.stringify(result), JSON.stringify(outcome)],
  );
  if (rows[0] === undefined) return undefined;
  await addTurnReferences(client, turnId, hashesOf(result));
  return toolStepOf(rows[0]);
}

/** Why a settlement of an open step was refused. */
function notSettled({ callId, runner }: ToolStep, { turnId, n, result }: Settlement): WireError {
  if (result.id !== callId)
    return new WireError(
      "INVALID_INPUT",
      `the result belongs to call ${result.id}; step ${n} of turn ${turnId} is call ${callId}`,
    );
  return new WireError("FENCED", `step ${n} of turn ${turnId} is claimed by ${runner ?? "another runner"}`);
}

async function read(client: PoolClient, { turnId, n }: Key): Promise<StepRow> {
  const { rows } = await client.query<StepRow>(
    `SELECT ${stepColumns} FROM parley.steps WHERE turn_id = $1 AND n = $2 AND kind = 'tool'`,
    [turnId, n],
  );
  if (rows[0] === undefined) throw noSuchStep({ turnId, n });
  return rows[0];
}

function noSuchStep({ turnId, n }: Key): WireError {
  return new WireError("NOT_FOUND", `turn ${turnId} has no tool step ${n}`);
}
