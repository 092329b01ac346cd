// Calls of tools that the program which drives a session runs itself: offered once, held by one of its processes, settled once.
import { maxResultBytesFor, truncateContent } from "@parley/bus";
import { inboxReady, priorityOf, WireError, type OutputOf, type store, type ToolResult } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { durationOf, stepColumns, toolStepOf, type StepRow } from "../../db/mappers.ts";
import { runOperation, runTransaction, singleRow } from "../../db/operation.ts";
import { lockTurn } from "../turns/end.ts";
import { unpark } from "../turns/notify.ts";
import type { Handlers } from "../handler.ts";

type Offer = OutputOf<typeof store.programCallOpen>;

interface OpenCall {
  n: number;
  session_id: string;
  tool: string;
  started_at: string | null;
  /** Results of the same step of the turn that are not in a message yet. */
  results: number;
}

export const programCallHandlers = {
  programCallOpen({ database }, input) {
    const { turnId, n } = input;
    return runOperation<Offer>(database, input, {
      name: "program_call_open",
      async run(client) {
        await lockTurn(client, turnId, input.epoch);
        const inserted = await client.query(
          `INSERT INTO parley.program_calls (turn_id, n, input, held_until)
           VALUES ($1, $2, $3, now() + $4 * interval '1 millisecond') ON CONFLICT (turn_id, n) DO NOTHING`,
          [turnId, n, input.input, input.holdMs],
        );
        if (inserted.rowCount === 0) return { result: await current(client, turnId, n) };
        const started = await client.query(
          `UPDATE parley.steps SET state = 'running', runner = 'agent-core', starts = starts + 1, started_at = now(), epoch = $3
           WHERE turn_id = $1 AND n = $2 AND kind = 'tool' AND result IS NULL`,
          [turnId, n, input.epoch],
        );
        if (started.rowCount === 0) throw new WireError("CONFLICT", `step ${n} of turn ${turnId} is settled`);
        return { result: await current(client, turnId, n), memo: {} };
      },
      replay: (client) => current(client, turnId, n),
    });
  },

  programCallTake({ database }, { turnId, callId, by, holdMs }) {
    return runTransaction(database, async (client) => {
      const call = await lockCall(client, turnId, callId);
      if (call === undefined) return { input: null };
      const { rows } = await client.query<{ input: string }>(
        `UPDATE parley.program_calls SET held_by = $3, held_until = now() + $4 * interval '1 millisecond'
         WHERE turn_id = $1 AND n = $2 AND coalesce(held_by, $3) = $3 AND held_until > now() RETURNING input`,
        [turnId, call.n, by, holdMs],
      );
      return { input: rows[0]?.input ?? null };
    });
  },

  async programCallAnswer({ database, bus }, { turnId, callId, by, content, isError }) {
    const sessionId = await runTransaction(database, async (client) => {
      const call = await lockCall(client, turnId, callId);
      if (call === undefined) return undefined;
      const { n, tool: name, results, session_id: session, started_at: startedAt } = call;
      const taken = await client.query(
        "SELECT FROM parley.program_calls WHERE turn_id = $1 AND n = $2 AND held_by = $3",
        [turnId, n, by],
      );
      if (taken.rowCount === 0) return undefined;
      const result: ToolResult = {
        type: "tool_result",
        id: callId,
        name,
        content: truncateContent(content, maxResultBytesFor(results)),
        isError,
        ...durationOf(startedAt),
      };
      await client.query(
        "UPDATE parley.steps SET state = $3, result = $4, finished_at = now() WHERE turn_id = $1 AND n = $2",
        [turnId, n, isError ? "failed" : "done", JSON.stringify(result)],
      );
      await unpark(client, turnId);
      return session;
    });
    if (sessionId === undefined) return { outcome: "over" as const };
    bus.publish(inboxReady, { sessionId, priority: priorityOf.user });
    return { outcome: "settled" as const };
  },
} satisfies Partial<Handlers>;

/** Locks the step of an unsettled call; undefined when there is none. Call ids are unique within a turn only as far as providers make them so: the newest counts. */
async function lockCall(client: PoolClient, turnId: string, callId: string): Promise<OpenCall | undefined> {
  const { rows } = await client.query<OpenCall>(
    `SELECT s.n, s.tool, s.started_at, t.session_id,
            (SELECT count(*)::int FROM parley.steps b WHERE b.turn_id = $1 AND b.kind = 'tool' AND b.message_seq IS NULL) AS results
     FROM parley.steps s JOIN parley.turns t ON t.id = s.turn_id
     WHERE s.turn_id = $1 AND s.call_id = $2 AND s.kind = 'tool' AND s.result IS NULL
     ORDER BY s.n DESC LIMIT 1 FOR UPDATE OF s`,
    [turnId, callId],
  );
  return rows[0];
}

async function current(client: PoolClient, turnId: string, n: number): Promise<Offer> {
  const held = await client.query<{ held_until: string; taken: boolean; over: boolean }>(
    `SELECT held_until, held_by IS NOT NULL AS taken, held_until <= now() AS over
     FROM parley.program_calls WHERE turn_id = $1 AND n = $2`,
    [turnId, n],
  );
  const step = await client.query<StepRow>(
    `SELECT ${stepColumns} FROM parley.steps WHERE turn_id = $1 AND n = $2 AND kind = 'tool'`,
    [turnId, n],
  );
  const { held_until: heldUntil, taken, over: isOver } = singleRow(held.rows);
  return { step: toolStepOf(singleRow(step.rows)), heldUntil, taken, isOver };
}
