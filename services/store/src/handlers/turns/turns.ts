// Reads turns and records requests to stop them.
import type { Bus } from "@parley/bus";
import { priorityOf, type store, WireError, type InputOf } from "@parley/contracts";
import { withClient, type Database } from "../../db/database.ts";
import { stepColumns, toolStepOf, turnColumns, turnOf, type StepRow, type TurnRow } from "../../db/mappers.ts";
import { runChange, runTransaction } from "../../db/operation.ts";
import { historyBytes } from "../sessions/history.ts";
import { publishReady, type ReadyHint } from "./notify.ts";
import { traceHandlers } from "./trace.ts";
import type { Handlers } from "../handler.ts";

export const turnHandlers = {
  ...traceHandlers,

  async turnCancel({ database, bus }, input) {
    const { running, cancelledQueued } = await cancelWaiting(database, input);
    const stopped = running === null ? [] : await stop(database, running);
    const turns = [...stopped, ...(await cancelChildren(database, stopped, input.background ? input.sessionId : null))];
    // A parked turn must be claimed again in order to end.
    publishReady(bus, wakesOf(turns));
    return { turnId: stopped[0]?.turnId ?? null, cancelledQueued, turns };
  },

  async turnGet({ database }, { turnId, n }) {
    const turn = await database.query<TurnRow & { cancel_requested: boolean }>(
      `SELECT ${turnColumns}, cancel_requested FROM parley.turns WHERE id = $1`,
      [turnId],
    );
    const row = turn.rows[0];
    if (row === undefined) throw new WireError("NOT_FOUND", `no turn ${turnId}`);
    const steps = await database.query<StepRow & { fits: boolean }>(
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
  },
} satisfies Partial<Handlers>;

/**
 * Cancels queued input and finds the running turn at one moment: input claimed later was sent later and continues. A sub-agent's task is
 * not cancelled here, because its call waits for its end. A separate transaction, because a claim locks the session before the turn.
 */
function cancelWaiting(
  database: Database,
  { opId, sessionId, turnId, queued, startedBy }: InputOf<typeof store.turnCancel>,
) {
  const { trust = null, sender } = startedBy ?? {};
  const theirs = [trust, sender?.channel ?? null, sender?.account ?? null, sender?.contactId ?? null];
  return runChange(database, "turn_cancel", opId, async (client) => {
    await client.query("SELECT FROM parley.sessions WHERE id = $1 FOR UPDATE", [sessionId]);
    const { rows } = await client.query<{ id: string }>(
      `SELECT t.id FROM parley.turns t JOIN parley.inbox ON inbox.id = t.inbox_id
       WHERE t.session_id = $1 AND t.state = 'running' AND ($2::uuid IS NULL OR t.id = $2) AND ${isTheirs(3)}`,
      [sessionId, turnId ?? null, ...theirs],
    );
    const taken = queued
      ? await client.query(
          `UPDATE parley.inbox SET state = 'cancelled'
           WHERE session_id = $1 AND state = 'queued' AND parent_turn_id IS NULL AND ${isTheirs(2)}`,
          [sessionId, ...theirs],
        )
      : undefined;
    return { running: rows[0]?.id ?? null, cancelledQueued: taken?.rowCount ?? 0 };
  });
}

/** SQL condition: the inbox row belongs to the person in the four parameters from `$<first>`: trust, channel, account, contact; null: any. */
function isTheirs(first: number): string {
  const [trust, channel, account, contact] = [0, 1, 2, 3].map((index) => `$${first + index}::text`);
  return `(${trust} IS NULL OR inbox.trust = ${trust}) AND (${channel} IS NULL OR (inbox.sender::jsonb ->> 'channel' = ${channel}
    AND inbox.sender::jsonb ->> 'account' = ${account} AND inbox.sender::jsonb -> 'contact' ->> 'id' = ${contact}))`;
}

async function stop(database: Database, turnId: string): Promise<StoppedTurn[]> {
  const { rows } = await database.query<StoppedTurn>(
    `UPDATE parley.turns SET cancel_requested = true, parked = false, wake_at = NULL
     WHERE id = $1 AND state = 'running' RETURNING id AS "turnId", session_id AS "sessionId"`,
    [turnId],
  );
  return rows;
}

interface StoppedTurn {
  turnId: string;
  sessionId: string;
}

function wakesOf(turns: readonly StoppedTurn[]): ReadyHint[] {
  return turns.map(({ sessionId }) => ({ sessionId, priority: priorityOf.user }));
}

/** Stops the sub-agents of ended turns that waited for them, because no turn receives their results any more. */
export async function stopOrphans(database: Database, bus: Bus, ended: readonly string[]): Promise<void> {
  const parents = ended.map((turnId) => ({ turnId, sessionId: "" }));
  publishReady(bus, wakesOf(await cancelChildren(database, parents, null)));
}

/**
 * Stops the sub-agents that the stopped turns wait for, and all other sub-agents of the session `withBackground`, level by level. Each
 * level is a separate transaction, because an ending child locks itself before its parent. A repeated request continues one that a crash
 * ended between two levels, and returns the same turns.
 */
async function cancelChildren(
  database: Database,
  stopped: readonly StoppedTurn[],
  withBackground: string | null,
): Promise<StoppedTurn[]> {
  const all: StoppedTurn[] = [];
  let turnIds = stopped.map((each) => each.turnId);
  let sessionIds = withBackground === null ? [] : [withBackground];
  while (turnIds.length > 0 || sessionIds.length > 0) {
    const below = `(parent_turn_id = ANY($1::uuid[]) AND parent_mode = 'wait')
      OR parent_turn_id IN (SELECT id FROM parley.turns WHERE session_id = ANY($2::uuid[]))`;
    const values = [turnIds, sessionIds];
    await runTransaction(database, async (client) => {
      // A claim locks the session while it takes a row: afterwards the row is a turn, or it was cancelled here.
      await client.query(
        `SELECT FROM parley.sessions WHERE id IN (SELECT session_id FROM parley.inbox WHERE state = 'queued' AND (${below}))
         ORDER BY id FOR UPDATE`,
        values,
      );
      await client.query(`UPDATE parley.inbox SET state = 'cancelled' WHERE state = 'queued' AND (${below})`, values);
    });
    const children = await withClient(database, async (client) => {
      const { rows } = await client.query<StoppedTurn>(
        `UPDATE parley.turns SET cancel_requested = true, parked = false, wake_at = NULL
         WHERE state = 'running' AND (${below}) RETURNING id AS "turnId", session_id AS "sessionId"`,
        values,
      );
      return rows;
    });
    all.push(...children);
    turnIds = children.map((each) => each.turnId);
    sessionIds = withBackground === null ? [] : children.map((each) => each.sessionId);
  }
  return all;
}
