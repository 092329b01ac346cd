// Forgets operation ids, events, prefixes, checkpoints, ended commands, what was heard and what consolidating memory has cost, each when its time is over, in small batches, on one replica at a time.
import type { Logger } from "@parley/chassis";
import { forgetBlobs, type ForgetBlobs } from "./blobs/forget.ts";
import type { Database } from "./database.ts";
import { forgetSessions, type SessionRetention } from "./session-retention.ts";
import { transact } from "./transaction.ts";

const retentionLock = 7_305_510_220;
const batch = 5_000;
/** Commands that have ended are remembered for so long: a late question about one is the same question again. */
const processDays = 7;
/** Checkpoints deleted at a time: each has many files. */
const checkpointBatch = 500;
/** Model calls that consolidated memory: nothing but the cost by day is asked of them, and that for at most 366 days, today included. */
const consolidationDays = 367;

export interface RetentionOptions {
  opRetentionHours: number;
  eventRetentionDays: number;
  /** 0: checkpoints are kept for ever. */
  checkpointDays: number;
}

/** Removes one batch of each kind; returns how many rows went. Does nothing while another replica does it. */
export async function forget(database: Database, options: RetentionOptions): Promise<number> {
  return transact(database, async (client) => {
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
    // A leader tells a prefix anew at least every hour before it names it: what was told a day ago is on nobody's way.
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

/** Batch after batch, until little is left: a busy cluster writes hundreds of ids a second. */
async function forgetAll(
  database: Database,
  options: RetentionOptions & ForgetBlobs,
  sessions: SessionRetention,
  log: Logger,
): Promise<void> {
  const gone = await forgetSessions(database, sessions);
  if (gone.sessions + gone.messages > 0) log.info(gone, "sessions and messages that need not be kept are deleted");
  while ((await forget(database, options)) >= batch);
  while ((await forgetBlobs(database, options, log)) > 0);
}

/** Forgets every ten minutes until the signal. */
export function keepForgetting(
  database: Database,
  options: RetentionOptions & ForgetBlobs,
  sessions: SessionRetention,
  log: Logger,
  signal: AbortSignal,
): void {
  const run = () => {
    forgetAll(database, options, sessions, log).catch((error: unknown) =>
      log.warn({ err: error }, "retention failed; tried again in ten minutes"),
    );
  };
  const timer = setInterval(run, 600_000);
  timer.unref();
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}
