// Tool steps: claimed before they start where their class asks for it, settled once.
import type { Bus } from "@parley/bus";
import {
  priorityOf,
  stepSettled,
  type store,
  voiceChanged,
  WireError,
  type InputOf,
  type OutputOf,
} from "@parley/contracts";
import { hashesOf, referFromTurn } from "../blobs/references.ts";
import type { Database, PoolClient } from "../database.ts";
import { stepColumns, toolStepOf, type StepRow } from "../rows.ts";
import { perform } from "../transaction.ts";
import { queueText } from "./queue-text.ts";
import { unpark, wake, type Wake } from "./report.ts";
import { giveBack, wasAsked } from "./unheard-answers.ts";
import { noteSpoken } from "./voice-replies.ts";

interface Key {
  turnId: string;
  n: number;
}

/** `intended → running`. An `idempotent` step that is already running may be started again: with the same key it is one effect. */
export function claim(
  database: Database,
  input: InputOf<typeof store.stepClaim>,
): Promise<OutputOf<typeof store.stepClaim>> {
  return perform(database, input, {
    name: "step_claim",
    async run(client) {
      const { rows } = await client.query<StepRow>({
        name: "step-claim",
        text: `
          UPDATE parley.steps SET state = 'running', runner = $3, starts = starts + 1, started_at = now(), epoch = $4
          WHERE turn_id = $1 AND n = $2 AND kind = 'tool' AND (state = 'intended' OR (state = 'running' AND class = 'idempotent'))
          RETURNING ${stepColumns}`,
        values: [input.turnId, input.n, input.runner, input.epoch],
      });
      const granted = rows[0] !== undefined;
      const row = rows[0] ?? (await read(client, input));
      return { result: { granted, step: toolStepOf(row) }, memo: { granted } };
    },
    replay: async (client, memo) => ({
      granted: (memo as { granted: boolean }).granted,
      step: toolStepOf(await read(client, input)),
    }),
  });
}

export async function settle(
  database: Database,
  bus: Bus,
  input: InputOf<typeof store.stepSettle>,
): Promise<OutputOf<typeof store.stepSettle>> {
  const wakes: Wake[] = [];
  let speaks = false;
  const output = await perform(database, input, {
    name: "settle",
    async run(client) {
      const { rows } = await client.query<StepRow & { parked: boolean; asked: boolean }>({
        name: "step-settle",
        text: `
          UPDATE parley.steps SET state = $3, result = $4, finished_at = now()
          WHERE turn_id = $1 AND n = $2 AND kind = 'tool' AND state IN ('intended', 'running')
          RETURNING ${stepColumns}, parley.is_parked(turn_id) AS parked, ${wasAsked} AS asked`,
        values: [input.turnId, input.n, input.state, JSON.stringify(input.result)],
      });
      const step = toolStepOf(rows[0] ?? (await read(client, input)));
      if (rows[0] !== undefined) {
        await referFromTurn(client, input.turnId, hashesOf(input.result));
        for (const outgoing of input.outgoing ?? []) await queueText(client, input.turnId, outgoing);
        speaks = await noteSpoken(client, input.turnId, input.outgoing ?? []);
        if (rows[0].asked) await giveBack(client, input.turnId, input.n, wakes);
        // Who parks it from here on waits for the step, and finds its result.
        const sessionId = rows[0].parked ? await unpark(client, input.turnId) : undefined;
        if (sessionId !== undefined) wakes.push({ sessionId, priority: priorityOf.user });
      }
      return { result: { step }, memo: {} };
    },
    replay: async (client) => ({ step: toolStepOf(await read(client, input)) }),
  });
  wake(bus, wakes);
  if (speaks) bus.publish(voiceChanged, {});
  bus.publish(stepSettled, { turnId: input.turnId, n: input.n }, { turn: input.turnId });
  return output;
}

async function read(client: PoolClient, { turnId, n }: Key): Promise<StepRow> {
  const { rows } = await client.query<StepRow>(
    `SELECT ${stepColumns} FROM parley.steps WHERE turn_id = $1 AND n = $2 AND kind = 'tool'`,
    [turnId, n],
  );
  if (rows[0] === undefined) throw new WireError("NOT_FOUND", `turn ${turnId} has no tool step ${n}`);
  return rows[0];
}
