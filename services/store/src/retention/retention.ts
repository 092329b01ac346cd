// Retention: deletes expired operation ids, events, texts without a turn, prefixes, checkpoints, ended processes, voice sessions,
// consolidation calls, audit entries, rewinds, context of groups, counted messages of people and send limits in small batches, on one
// replica at a time.
import type { Logger } from "@parley/chassis";
import { advisoryLocks } from "../db/advisory-locks.ts";
import { collectUnreferenced, type BlobCollection } from "./blobs.ts";
import { contextDays } from "../handlers/inbox/group-context.ts";
import type { Database } from "../db/database.ts";
import { deleteExpiredSessions, type SessionRetention } from "./sessions.ts";
import { runTransaction } from "../db/operation.ts";

const batch = 5_000;
/** How long ended background processes are kept, so that a late retry about one stays idempotent. */
const processDays = 7;
/** How long prefixes that no session uses are kept: with them, the requests of earlier turns can be shown. */
const prefixDays = 30;
/** Checkpoints deleted at a time; small because each has many files. */
const checkpointBatch = 500;
/** How long consolidation calls are kept: only their cost per day is reported, for at most 366 days including today. */
const consolidationDays = 367;

export interface RetentionOptions {
  opRetentionHours: number;
  eventRetentionDays: number;
  /** 0: entries of the audit log are never deleted. */
  auditRetentionDays: number;
  /** 0: checkpoints are never deleted. */
  checkpointDays: number;
}

interface ExpiredRows {
  table: string;
  key: string;
  /** Of one batch; may end with an order and a limit. */
  condition: string;
  /** Parameters of the condition. */
  values?: unknown[];
}

function expired(options: RetentionOptions): ExpiredRows[] {
  const older = (column: string, unit: string) => `${column} < now() - $1 * interval '1 ${unit}'`;
  const { opRetentionHours: hours, eventRetentionDays: days, auditRetentionDays, checkpointDays } = options;
  return [
    {
      table: "ops",
      key: "op_id",
      condition: `${older("created_at", "hour")} ORDER BY created_at LIMIT ${batch}`,
      values: [hours],
    },
    {
      table: "events",
      key: "session_id, seq",
      condition: `${older("created_at", "day")} ORDER BY created_at LIMIT ${batch}`,
      values: [days],
    },
    // The texts of turns are deleted with their sessions. The rest of a held text may still be asked for.
    {
      table: "outbox",
      key: "id",
      condition: `turn_id IS NULL AND state IN ('sent', 'unknown', 'dropped') AND held_at IS NULL
        AND ${older("settled_at", "day")} LIMIT ${batch}`,
      values: [days],
    },
    // A leader stores a prefix again at least every hour before it refers to it, so an old one is not about to be referenced.
    {
      table: "prefixes",
      key: "hash",
      condition: `${older("created_at", "day")}
        AND NOT EXISTS (SELECT FROM parley.sessions WHERE prefix_hash = prefixes.hash) LIMIT ${batch}`,
      values: [prefixDays],
    },
    {
      table: "processes",
      key: "id",
      condition: `state <> 'running' AND ${older("ended_at", "day")} LIMIT ${batch}`,
      values: [processDays],
    },
    {
      table: "voice_sessions",
      key: "id",
      condition: `state IN ('stopped', 'failed') AND ${older("changed_at", "day")} LIMIT ${batch}`,
      values: [days],
    },
    {
      table: "memory_consolidations",
      key: "id",
      condition: `${older("created_at", "day")} ORDER BY created_at LIMIT ${batch}`,
      values: [consolidationDays],
    },
    // Its numbers follow the time, so only the oldest entries are looked at.
    {
      table: "audit_log",
      key: "n",
      condition: `$1 > 0 AND ${older("at", "day")} AND n IN (SELECT n FROM parley.audit_log ORDER BY n LIMIT ${batch})`,
      values: [auditRetentionDays],
    },
    {
      table: "rewind_permits",
      key: "rewind_id, secret_hash",
      condition: `created_at < now() - interval '1 day' LIMIT ${batch}`,
    },
    {
      table: "group_context",
      key: "n",
      condition: `created_at < now() - interval '${contextDays} days' LIMIT ${batch}`,
    },
    {
      table: "person_messages",
      key: "inbox_id",
      condition: `at < now() - interval '2 days' ORDER BY at LIMIT ${batch}`,
    },
    {
      table: "person_refusals",
      key: "channel, account, contact_id, limit_name",
      condition: `day < now() - interval '2 days' LIMIT ${batch}`,
    },
    {
      table: "send_limits",
      key: "channel, account, conversation",
      condition: `next_at < now() - interval '1 day' AND coalesce(blocked_until < now(), true) LIMIT ${batch}`,
    },
    {
      table: "checkpoints",
      key: "id",
      condition: `$1 > 0 AND ${older("at", "day")} ORDER BY at LIMIT ${checkpointBatch}`,
      values: [checkpointDays],
    },
    {
      table: "rewinds",
      key: "id",
      condition: `$1 > 0 AND state <> 'running' AND ${older("began_at", "day")} LIMIT ${batch}`,
      values: [checkpointDays],
    },
  ];
}

/** Deletes one batch of each kind; returns the number of deleted rows. Does nothing while another replica runs it. */
export async function deleteExpired(database: Database, options: RetentionOptions): Promise<number> {
  return runTransaction(database, async (client) => {
    const lock = await client.query<{ mine: boolean }>(
      `SELECT pg_try_advisory_xact_lock(${advisoryLocks.retention}) AS mine`,
    );
    if (lock.rows[0]?.mine !== true) return 0;
    let removed = 0;
    for (const { table, key, condition, values = [] } of expired(options)) {
      const { rowCount } = await client.query(
        `DELETE FROM parley.${table} WHERE (${key}) IN (SELECT ${key} FROM parley.${table} WHERE ${condition})`,
        values,
      );
      removed += rowCount ?? 0;
    }
    return removed;
  });
}

/** Repeats until a batch is not full: a busy cluster writes hundreds of ids per second. */
async function forgetAll(
  database: Database,
  options: RetentionOptions & BlobCollection,
  sessions: SessionRetention,
  log: Logger,
): Promise<void> {
  const deleted = await deleteExpiredSessions(database, sessions);
  if (deleted.sessions + deleted.messages > 0) log.info({ counts: deleted }, "expired sessions and messages deleted");
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
