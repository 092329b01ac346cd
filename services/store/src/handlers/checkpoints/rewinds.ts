// Rewinds: one at a time for the whole workspace, owned through a lease, with a stored report.
import { type store, WireError, type InputOf, type OutputOf, type RewindReport } from "@parley/contracts";
import { type PoolClient } from "../../db/database.ts";
import { singleRow, runTransaction } from "../../db/operation.ts";
import { beginOf } from "./checkpoints.ts";
import { permitted, type PermittedRewind } from "./rewind-permits.ts";
import type { Handlers } from "../handler.ts";

/** Held while a rewind begins. */
const rewindLock = 7_305_510_223;

type Begin = PermittedRewind & Pick<InputOf<typeof store.rewindBegin>, "runner" | "ttlMs">;
type Begun = OutputOf<typeof store.rewindBegin>;

interface RewindRow {
  id: string;
  session_id: string;
  target_id: string;
  state: "running" | "done" | "failed";
  report: string | null;
  /** The lease is free: expired, held by a previous instance of this runner, or requested again by its holder. */
  free: boolean;
}

export const rewindHandlers = {
  rewindBegin: permitted(async ({ database }, permit, { runner, ttlMs }) => {
    const input = { ...permit, runner, ttlMs };
    return runTransaction(database, async (client) => {
      await client.query(`SELECT pg_advisory_xact_lock(${rewindLock})`);
      // A claim also locks the session: no turn begins between this check and the commit.
      await client.query("SELECT FROM parley.sessions WHERE id = $1 FOR UPDATE", [input.sessionId]);
      const { rows } = await client.query<RewindRow>(
        `SELECT id, session_id, target_id, state, report,
                expires_at <= now()
                  OR CASE WHEN runner = $2 THEN id = $1 ELSE split_part(runner, '#', 1) = split_part($2, '#', 1) END AS free
         FROM parley.rewinds WHERE id = $1 OR state = 'running'`,
        [input.rewindId, input.runner],
      );
      const own = rows.find((row) => row.id === input.rewindId);
      if (own !== undefined && (own.session_id !== input.sessionId || own.target_id !== input.turnId)) {
        throw new WireError("CONFLICT", `rewind ${input.rewindId} is for another session or turn`);
      }
      if (own?.state === "done" && own.report !== null) {
        return { status: "done", report: JSON.parse(own.report) as RewindReport };
      }
      if (rows.some((row) => row.state === "running" && !row.free)) return { status: "busy" };
      await beginOf(client, input);
      await refuseWhileRunning(client, input.sessionId);
      return grant(client, input);
    });
  }),

  rewindUpdate: permitted(async ({ database }, { rewindId }, { fence, change }) => {
    const { rowCount } =
      "ttlMs" in change
        ? await database.query(
            `UPDATE parley.rewinds SET expires_at = now() + $3 * interval '1 millisecond'
             WHERE id = $1 AND fence = $2 AND state = 'running'`,
            [rewindId, fence, change.ttlMs],
          )
        : // A retry matches the stored report.
          await database.query(
            `UPDATE parley.rewinds SET state = CASE WHEN $3::text IS NULL THEN 'failed' ELSE 'done' END, report = $3
             WHERE id = $1 AND fence = $2 AND (state = 'running' OR report IS NOT DISTINCT FROM $3)`,
            [rewindId, fence, change.report === null ? null : JSON.stringify(change.report)],
          );
    if (rowCount !== 1) throw new WireError("FENCED", `rewind ${rewindId}: fence ${fence} is over`);
    return {};
  }),
} satisfies Partial<Handlers>;

async function refuseWhileRunning(client: PoolClient, sessionId: string): Promise<void> {
  const { rows } = await client.query<{ own: boolean }>(
    `SELECT session_id = $1 AS own FROM parley.turns
     WHERE state = 'running'
       AND (session_id = $1 OR root_turn_id IN (SELECT id FROM parley.turns WHERE session_id = $1)) LIMIT 1`,
    [sessionId],
  );
  if (rows[0] === undefined) return;
  const who = rows[0].own ? "a turn of this session" : "a sub-agent of this session";
  throw new WireError("CONFLICT", `${who} is still running and may change files; stop it or wait for its end`);
}

async function grant(client: PoolClient, input: Begin): Promise<Begun> {
  // Abandoned rewinds.
  await client.query("UPDATE parley.rewinds SET state = 'failed' WHERE state = 'running' AND id <> $1", [
    input.rewindId,
  ]);
  const { rows } = await client.query<{ fence: number }>(
    `INSERT INTO parley.rewinds AS r (id, session_id, target_id, state, runner, expires_at)
     VALUES ($1, $2, $3, 'running', $4, now() + $5 * interval '1 millisecond')
     ON CONFLICT (id) DO UPDATE SET state = 'running', runner = $4, fence = r.fence + 1, expires_at = excluded.expires_at
     RETURNING fence`,
    [input.rewindId, input.sessionId, input.turnId, input.runner, input.ttlMs],
  );
  await client.query(
    "INSERT INTO parley.checkpoints (id, session_id, kind, at) VALUES ($1, $2, 'rewind', now()) ON CONFLICT (id) DO NOTHING",
    [input.rewindId, input.sessionId],
  );
  return { status: "granted", fence: singleRow(rows).fence };
}
