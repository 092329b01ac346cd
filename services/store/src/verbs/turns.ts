// Reading a turn, and remembering that it shall stop.
import { type store, WireError, type InputOf, type OutputOf } from "@parley/contracts";
import { withClient, type Database } from "../database.ts";
import { stepColumns, toolStepOf, turnColumns, turnOf, type StepRow, type TurnRow } from "../rows.ts";
import { transact } from "../transaction.ts";

export async function get(
  database: Database,
  { turnId }: InputOf<typeof store.turnGet>,
): Promise<OutputOf<typeof store.turnGet>> {
  return withClient(database, async (client) => {
    const turn = await client.query<TurnRow & { cancel_requested: boolean }>(
      `SELECT ${turnColumns}, cancel_requested FROM parley.turns WHERE id = $1`,
      [turnId],
    );
    const row = turn.rows[0];
    if (row === undefined) throw new WireError("NOT_FOUND", `no turn ${turnId}`);
    const steps = await client.query<StepRow>(
      `SELECT ${stepColumns} FROM parley.steps WHERE turn_id = $1 AND kind = 'tool' ORDER BY n DESC LIMIT 200`,
      [turnId],
    );
    return { turn: turnOf(row), steps: steps.rows.toReversed().map(toolStepOf), cancelRequested: row.cancel_requested };
  });
}

export async function cancel(
  database: Database,
  input: InputOf<typeof store.turnCancel>,
): Promise<OutputOf<typeof store.turnCancel>> {
  return transact(database, async (client) => {
    // The same order of locks as a claim: session first.
    await client.query("SELECT FROM parley.sessions WHERE id = $1 FOR UPDATE", [input.sessionId]);
    const turn = await client.query<{ id: string }>(
      `UPDATE parley.turns SET cancel_requested = true
       WHERE session_id = $1 AND state = 'running' AND ($2::uuid IS NULL OR id = $2) RETURNING id`,
      [input.sessionId, input.turnId ?? null],
    );
    const queued = input.queued
      ? await client.query("UPDATE parley.inbox SET state = 'cancelled' WHERE session_id = $1 AND state = 'queued'", [
          input.sessionId,
        ])
      : undefined;
    return { turnId: turn.rows[0]?.id ?? null, cancelledQueued: queued?.rowCount ?? 0 };
  });
}
