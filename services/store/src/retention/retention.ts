// Retention: deletes expired operation ids, events, prefixes, checkpoints, ended processes, voice sessions, consolidation calls and
// rewinds in small batches, on one replica at a time.
import type { Logger } from "@parley/chassis";
import { collectUnreferenced, type BlobCollection } from "./blobs.ts";
import type { Database } from "../db/database.ts";
import { deleteExpiredSessions, type SessionRetention } from "./sessions.ts";
import { runTransaction } from "../db/operation.ts";

const retentionLock = 7_305_510_220;
const batch = 5_000;
/** How long ended background processes are kept, so that a late retry about one stays idempotent. */
const processDays = 7;
/** Checkpoints deleted at a time; small because each has many files. */
const checkpointBatch = 500;
/** How long consolidation calls are kept: only their cost per day is reported, for at most 366 days including today. */
const consolidationDays = 367;

export interface RetentionOptions {
  opRetentionHours: number;
  eventRetentionDays: number;
  /** 0: checkpoints are never deleted. */
  checkpointDays: number;
}

/** Deletes one batch of each kind; returns the number of deleted rows. Does nothing while another replica runs it. */
export async function deleteExpired(database: Database, options: RetentionOptions): Promise<number> {
  return runTransaction(database, async (client) => {
    const lock = await client.query<{ mine: boolean }>(`SELECT pg_try_advisory_xact_lock(${retentionLock}) AS mine`);
    if (lock.rows[0]?.mine !== true) return 0;
    const ops = await client.query(
      `DELETE FROM parley.ops WHERE op_id IN (
         SELECT op_id FROM parley.ops WHERE created_at < now() - $1 * interval '1 hour' ORDER BY created_at LIMIT ${batch})`,
      [options.opRetentionHours],
    );
    const events = await client.query(
      `DELETE FROM parley.events WHERE (session_id, seq) IN (
         SELECT session_id, seq FROM parley.events WHERE created_at < now() - $1 * interval '1 day' ORDER BY created_at LIMIT ${batch})`,
      [options.eventRetentionDays],
    );
    // A leader stores a prefix again at least every hour before it refers to it, so a day-old prefix is not about to be referenced.
    const prefixes = await client.query(
      `DELETE FROM parley.prefixes WHERE hash IN (
         SELECT hash FROM parley.prefixes p
         WHERE created_at < now() - interval '1 day' AND NOT EXISTS (SELECT FROM parley.sessions WHERE prefix_hash = p.hash)
         LIMIT ${batch})`,
    );
    const processes = await client.query(
      `DELETE FROM parley.processes WHERE id IN (
         SELECT id FROM parley.processes WHERE state <> 'running' AND ended_at < now() - ${processDays} * interval '1 day' LIMIT ${batch})`,
    );
    const voices = await client.query(
      `DELETE FROM parley.voice_sessions WHERE id IN (
         SELECT id FROM parley.voice_sessions
         WHERE state IN ('stopped', 'failed') AND changed_at < now() - $1 * interval '1 day' LIMIT ${batch})`,
      [options.eventRetentionDays],
    );
    const consolidations = await client.query(
      `DELETE FROM parley.memory_consolidations WHERE id IN (
         SELECT id FROM parley.memory_consolidations
         WHERE created_at < now() - ${consolidationDays} * interval '1 day' ORDER BY created_at LIMIT ${batch})`,
    );
    const permits = await client.query(
      `DELETE FROM parley.rewind_permits WHERE (rewind_id, secret_hash) IN (
         SELECT rewind_id, secret_hash FROM parley.rewind_permits WHERE created_at < now() - interval '1 day' LIMIT ${batch})`,
    );
    const checkpoints = await client.query(
      `DELETE FROM parley.checkpoints WHERE id IN (
         SELECT id FROM parley.checkpoints WHERE $1 > 0 AND at < now() - $1 * interval '1 day' ORDER BY at LIMIT ${checkpointBatch})`,
      [options.checkpointDays],
    );
    const rewinds = await client.query(
      `DELETE FROM parley.rewinds WHERE id IN (
         SELECT id FROM parley.rewinds WHERE $1 > 0 AND state <> 'running' AND began_at < now() - $1 * interval '1 day' LIMIT ${batch})`,
      [options.checkpointDays],
    );
    const removed = [ops, events, prefixes, processes, voices, consolidations, permits, checkpoints, rewinds];
    return removed.reduce((sum, { rowCount }) => sum + (rowCount ?? 0), 0);
  });
}

/** Repeats until a batch is not full: a busy cluster writes hundreds of ids per second. */
async function forgetAll(
  database: Database,
  options: RetentionOptions & BlobCollection,
  sessions: SessionRetention,
  log: Logger,
): Promise<void> {
  const gone = await deleteExpiredSessions(database, sessions);
  if (gone.sessions + gone.messages > 0) log.info(gone, "expired sessions and messages deleted");
  while ((await deleteExpired(database, options)) >= batch);
  while ((await collectUnreferenced(database, options, log)) > 0);
}

/** Runs the retention every ten minutes until the signal. */
export function startRetentionJob(
  database: Database,
  options: RetentionOptions & BlobCollection,
  sessions: SessionRetention,
  log: Logger,
  signal: AbortSignal,
): void {
  const run = () => {
    forgetAll(database, options, sessions, log).catch((error: unknown) =>
      log.warn({ err: error }, "retention failed: retried in ten minutes"),
    );
  };
  const timer = setInterval(run, 600_000);
  timer.unref();
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}
