// Reading a turn, and remembering that it shall stop.
import { type store, WireError, type InputOf, type OutputOf } from "@parley/contracts";
import { withClient, type Database } from "../database.ts";
import { stepColumns, toolStepOf, turnColumns, turnOf, type StepRow, type TurnRow } from "../rows.ts";
import { transact } from "../transaction.ts";
import { historyBytes } from "./history.ts";

export async function get(
  database: Database,
  { turnId, n }: InputOf<typeof store.turnGet>,
): Promise<OutputOf<typeof store.turnGet>> {
  return withClient(database, async (client) => {
    const turn = await client.query<TurnRow & { cancel_requested: boolean }>(
      `SELECT ${turnColumns}, cancel_requested FROM parley.turns WHERE id = $1`,
      [turnId],
    );
    const row = turn.rows[0];
    if (row === undefined) throw new WireError("NOT_FOUND", `no turn ${turnId}`);
    const steps = await client.query<StepRow & { fits: boolean }>(
      `SELECT ${stepColumns}, (row_number() OVER w = 1 OR sum(octet_length(input) + octet_length(coalesce(result, ''))) OVER w <= $3) AS fits
       FROM parley.steps WHERE turn_id = $1 AND kind = 'tool' AND ($2::int IS NULL OR n = $2)
       WINDOW w AS (ORDER BY n DESC) ORDER BY n DESC LIMIT 200`,
      [turnId, n ?? null, historyBytes],
    );
    return {
      turn: turnOf(row),
      steps: steps.rows
        .filter((step) => step.fits)
        .toReversed()
        .map(toolStepOf),
      cancelRequested: row.cancel_requested,
    };
  });
}

export async function cancel(
  database: Database,
  input: InputOf<typeof store.turnCancel>,
): Promise<OutputOf<typeof store.turnCancel>> {
  return transact(database, async (client) => {
    // The same order of locks as a commit: the turn, then the session.
    const turn = await client.query<{ id: string }>(
      `UPDATE parley.turns SET cancel_requested = true
       WHERE session_id = $1 AND state = 'running' AND ($2::uuid IS NULL OR id = $2) RETURNING id`,
      [input.sessionId, input.turnId ?? null],
    );
    await client.query("SELECT FROM parley.sessions WHERE id = $1 FOR UPDATE", [input.sessionId]);
    const queued = input.queued
      ? await client.query("UPDATE parley.inbox SET state = 'cancelled' WHERE session_id = $1 AND state = 'queued'", [
          input.sessionId,
        ])
      : undefined;
    return { turnId: turn.rows[0]?.id ?? null, cancelledQueued: queued?.rowCount ?? 0 };
  });
}
