// Rewinds: one at a time for the whole workspace. The tool-runner that runs one holds a lease on it; its report is stored.
import {
  sessionEvent,
  type store,
  WireError,
  type DurableEvent,
  type InputOf,
  type OutputOf,
  type RewindReport,
} from "@parley/contracts";
import { advisoryLocks } from "../../db/advisory-locks.ts";
import { type PoolClient } from "../../db/database.ts";
import { singleRow, runTransaction } from "../../db/operation.ts";
import { SessionLog } from "../sessions/log.ts";
import { startOf } from "./checkpoints.ts";
import { withRewindPermit, type PermittedRewind } from "./rewind-permits.ts";
import type { Handlers } from "../handler.ts";

type BeginInput = PermittedRewind & Omit<InputOf<typeof store.rewindBegin>, "rewind">;
type BeginOutput = OutputOf<typeof store.rewindBegin>;

interface RewindRow {
  id: string;
  session_id: string;
  target_id: string;
  state: "running" | "done" | "failed";
  report: string | null;
  /**
   * The caller may take the lease: it has expired, a previous instance of this runner holds it (`name#instance`), or the caller holds it
   * itself and repeats its request.
   */
  available: boolean;
}

export const rewindHandlers = {
  rewindBegin: withRewindPermit(async ({ database }, permit, { runner, ttlMs, idle }) => {
    const input = { ...permit, runner, ttlMs };
    return runTransaction(database, async (client) => {
      await client.query(`SELECT pg_advisory_xact_lock(${advisoryLocks.rewind})`);
      // The claim of a turn also locks the session: no turn begins between this check and the commit.
      await client.query("SELECT FROM parley.sessions WHERE id = $1 FOR UPDATE", [input.sessionId]);
      const { rows } = await client.query<RewindRow>(
        `SELECT id, session_id, target_id, state, report,
                expires_at <= now()
                  OR CASE WHEN runner = $2 THEN id = $1 ELSE split_part(runner, '#', 1) = split_part($2, '#', 1) END AS available
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
      if (rows.some((row) => row.state === "running" && !row.available)) return { status: "busy" };
      await startOf(client, input); // throws NOT_FOUND if this session has no such turn or rewind
      await refuseWhileRunning(client, input.sessionId);
      const processId = idle === undefined ? null : await runningProcess(client, input.sessionId, idle);
      if (processId !== null) return { status: "unconfirmed", processId };
      return startRewind(client, input);
    });
  }),

  rewindUpdate: withRewindPermit(async ({ database, bus }, { rewindId }, { fence, change }) => {
    if ("ttlMs" in change) {
      const { rowCount } = await database.query(
        `UPDATE parley.rewinds SET expires_at = now() + $3 * interval '1 millisecond'
         WHERE id = $1 AND fence = $2 AND state = 'running'`,
        [rewindId, fence, change.ttlMs],
      );
      if (rowCount !== 1) throw staleFence(rewindId, fence);
      return {};
    }
    const { report } = change;
    const ended = await runTransaction(database, (client) => endRewind(client, { rewindId, fence, report }));
    if (ended !== null) bus.publish(sessionEvent, ended.event, { session: ended.sessionId });
    return {};
  }),
} satisfies Partial<Handlers>;

/** Maximum number of paths in the event of a rewind. */
const maxEventPaths = 50;

function staleFence(rewindId: string, fence: number): WireError {
  return new WireError("FENCED", `rewind ${rewindId}: fence ${fence} is no longer valid`);
}

/**
 * Stores the outcome, and appends an event to the session's log if the rewind changed files. Null: it failed, changed nothing, or the
 * request repeats a stored outcome. Throws FENCED.
 */
async function endRewind(
  client: PoolClient,
  { rewindId, fence, report }: { rewindId: string; fence: number; report: RewindReport | null },
): Promise<{ sessionId: string; event: DurableEvent } | null> {
  const stored = report === null ? null : JSON.stringify(report);
  // The same order of locks as `rewindBegin`: session, then rewind.
  await client.query(
    "SELECT FROM parley.sessions WHERE id = (SELECT session_id FROM parley.rewinds WHERE id = $1) FOR UPDATE",
    [rewindId],
  );
  const { rows } = await client.query<RewindRow>(
    "SELECT * FROM parley.rewinds WHERE id = $1 AND fence = $2 FOR UPDATE",
    [rewindId, fence],
  );
  const [row] = rows;
  if (row === undefined || (row.state !== "running" && row.report !== stored)) throw staleFence(rewindId, fence);
  if (row.state !== "running") return null;
  await client.query("UPDATE parley.rewinds SET state = $2, report = $3 WHERE id = $1", [
    rewindId,
    report === null ? "failed" : "done",
    stored,
  ]);
  const changed = (report?.files ?? []).filter(({ outcome }) => outcome === "restored" || outcome === "removed");
  if (report === null || changed.length === 0) return null;
  const body = { checkpointId: rewindId, counts: report.counts, paths: changed.slice(0, maxEventPaths).map(pathOf) };
  const seq = await new SessionLog(client, row.session_id, row.target_id).event("rewound", body);
  return { sessionId: row.session_id, event: { type: "rewound", seq, turnId: row.target_id, ...body } };
}

function pathOf({ path }: { path: string }): string {
  return path;
}

/** Throws CONFLICT while a turn of the session or of its sub-agents runs. */
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

/** A background process of the session on a tool-runner that is not in `idle`; null: none. */
async function runningProcess(client: PoolClient, sessionId: string, idle: readonly string[]): Promise<string | null> {
  const { rows } = await client.query<{ id: string }>(
    `SELECT id FROM parley.processes
     WHERE session_id = $1 AND state = 'running' AND split_part(runner, '#', 1) <> ALL ($2) ORDER BY started_at LIMIT 1`,
    [sessionId, idle],
  );
  return rows[0]?.id ?? null;
}

/**
 * Starts the rewind, or lets another runner continue it under the next fence. A repeated or overlapping request of the runner that has it
 * gets its fence again.
 */
async function startRewind(client: PoolClient, input: BeginInput): Promise<BeginOutput> {
  // Those whose lease has ended: only one rewind may run.
  await client.query("UPDATE parley.rewinds SET state = 'failed' WHERE state = 'running' AND id <> $1", [
    input.rewindId,
  ]);
  const { rows } = await client.query<{ fence: number }>(
    `INSERT INTO parley.rewinds AS r (id, session_id, target_id, state, runner, expires_at)
     VALUES ($1, $2, $3, 'running', $4, now() + $5 * interval '1 millisecond')
     ON CONFLICT (id) DO UPDATE SET state = 'running', runner = $4, expires_at = excluded.expires_at,
       fence = r.fence + CASE WHEN r.state = 'running' AND r.runner = $4 THEN 0 ELSE 1 END
     RETURNING fence`,
    [input.rewindId, input.sessionId, input.turnId, input.runner, input.ttlMs],
  );
  await client.query(
    "INSERT INTO parley.checkpoints (id, session_id, kind, at) VALUES ($1, $2, 'rewind', now()) ON CONFLICT (id) DO NOTHING",
    [input.rewindId, input.sessionId],
  );
  return { status: "granted", fence: singleRow(rows).fence };
}
