// Reading a turn, and remembering that it shall stop.
import type { Bus } from "@parley/bus";
import { priorityOf, type store, WireError, type InputOf, type OutputOf } from "@parley/contracts";
import { withClient, type Database } from "../database.ts";
import { stepColumns, toolStepOf, turnColumns, turnOf, type StepRow, type TurnRow } from "../rows.ts";
import { transact } from "../transaction.ts";
import { historyBytes } from "./history.ts";
import { wake } from "./report.ts";

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
  bus: Bus,
  input: InputOf<typeof store.turnCancel>,
): Promise<OutputOf<typeof store.turnCancel>> {
  const { stopped, cancelledQueued } = await transact(database, async (client) => {
    // The same order of locks as a commit: the turn, then the session.
    const turn = await client.query<StoppedTurn>(
      `UPDATE parley.turns SET cancel_requested = true, parked = false, wake_at = NULL
       WHERE session_id = $1 AND state = 'running' AND ($2::uuid IS NULL OR id = $2) RETURNING id AS "turnId", session_id AS "sessionId"`,
      [input.sessionId, input.turnId ?? null],
    );
    await client.query("SELECT FROM parley.sessions WHERE id = $1 FOR UPDATE", [input.sessionId]);
    const queued = input.queued
      ? await client.query("UPDATE parley.inbox SET state = 'cancelled' WHERE session_id = $1 AND state = 'queued'", [
          input.sessionId,
        ])
      : undefined;
    return { stopped: turn.rows, cancelledQueued: queued?.rowCount ?? 0 };
  });
  const turns = [...stopped, ...(await cancelChildren(database, input, stopped))];
  // A turn that was parked has to be taken up once more, to end.
  wake(
    bus,
    turns.map(({ sessionId }) => ({ sessionId, priority: priorityOf.user })),
  );
  return { turnId: stopped[0]?.turnId ?? null, cancelledQueued, turns };
}

interface StoppedTurn {
  turnId: string;
  sessionId: string;
}

/**
 * The sub-agents that the stopped turns wait for, and with `background` every other one of the session, level by level. Each
 * level is a transaction of its own: a child that ends locks itself before its parent.
 */
async function cancelChildren(
  database: Database,
  { sessionId, background = false }: InputOf<typeof store.turnCancel>,
  stopped: StoppedTurn[],
): Promise<StoppedTurn[]> {
  const all: StoppedTurn[] = [];
  let parents = stopped;
  for (let first = true; first || parents.length > 0; first = false) {
    const turnIds = parents.map((each) => each.turnId);
    const sessionIds = parents.map((each) => each.sessionId);
    if (first && background) sessionIds.push(sessionId);
    const below = `(parent_turn_id = ANY($1::uuid[]) AND parent_mode = 'wait')
      OR ($3 AND parent_turn_id IN (SELECT id FROM parley.turns WHERE session_id = ANY($2::uuid[])))`;
    parents = await withClient(database, async (client) => {
      const values = [turnIds, sessionIds, background];
      await client.query(`UPDATE parley.inbox SET state = 'cancelled' WHERE state = 'queued' AND (${below})`, values);
      const { rows } = await client.query<StoppedTurn>(
        `UPDATE parley.turns SET cancel_requested = true, parked = false, wake_at = NULL
         WHERE state = 'running' AND NOT cancel_requested AND (${below}) RETURNING id AS "turnId", session_id AS "sessionId"`,
        values,
      );
      return rows;
    });
    all.push(...parents);
  }
  return all;
}
