// The figures of the whole cluster, as metrics: what waits, and for how long. One replica measures them; the lock decides which.
import { setTimeout as delay } from "node:timers/promises";
import type { Logger, ServiceMetrics } from "@parley/chassis";
import { Client } from "pg";
import { advisoryLocks } from "./advisory-locks.ts";
import type { Database } from "./database.ts";

const intervalMs = 10_000;

const gauges = [
  "parley_inbox_rows",
  "parley_inbox_oldest_seconds",
  "parley_outbox_rows",
  "parley_outbox_oldest_seconds",
  "parley_turns_open",
  "parley_waiting",
  "parley_schema_version",
  "parley_cluster_measured_timestamp_seconds",
] as const;

/**
 * $1: the leader is silent, so nobody works on running turns. Every part reads few rows by a partial index, however many messages there
 * were.
 */
const figures = `
  SELECT
    (SELECT count(*) FROM parley.inbox WHERE state = 'queued') AS "queued",
    (SELECT count(*) FROM parley.inbox i JOIN parley.turns t ON t.id = i.turn_id
     WHERE t.state = 'running' AND i.state = 'claimed') AS "claimed",
    (SELECT count(*) FROM parley.inbox WHERE state = 'dead') AS "dead",
    waiting."behindLeader", waiting."behindSession",
    (SELECT count(*) FROM parley.outbox WHERE state = 'pending') AS "pending",
    (SELECT count(*) FROM parley.outbox WHERE state = 'sending') AS "sending",
    (SELECT count(*) FROM parley.outbox WHERE state = 'unknown') AS "unknown",
    (SELECT extract(epoch FROM now() - min(created_at)) FROM parley.outbox
     WHERE state IN ('pending', 'sending') AND expires_at > now()) AS "unsent",
    (SELECT count(*) FROM parley.turns WHERE state = 'running' AND NOT parked) AS "running",
    (SELECT count(*) FROM parley.turns WHERE state = 'running' AND parked) AS "parked",
    (SELECT count(*) FROM parley.approvals WHERE state = 'pending' AND expires_at > now()) AS "approvals",
    (SELECT count(*) FROM parley.questions WHERE state = 'open' AND expires_at > now()) AS "questions",
    (SELECT count(*) FROM parley.steps s JOIN parley.turns t ON t.id = s.turn_id
     WHERE t.state = 'running' AND s.kind = 'tool' AND s.state IN ('intended', 'running')) AS "tools",
    (SELECT max(name) FROM parley.schema_migrations) AS "migration"
  FROM (
    SELECT
      extract(epoch FROM now() - min(since) FILTER (WHERE NOT busy)) AS "behindLeader",
      extract(epoch FROM now() - min(since) FILTER (WHERE busy)) AS "behindSession"
    FROM (
      SELECT greatest(received_at, ready_at) AS since,
        NOT $1 AND EXISTS (SELECT FROM parley.turns t WHERE t.session_id = i.session_id AND t.state = 'running') AS busy
      FROM parley.inbox i WHERE state = 'queued' AND ready_at <= now()
      UNION ALL
      SELECT greatest(i.received_at, i.ready_at), false FROM parley.inbox i JOIN parley.turns t ON t.id = i.turn_id
      WHERE $1 AND t.state = 'running' AND NOT t.parked AND i.state = 'claimed'
    ) AS queued
  ) AS waiting`;

interface Row extends Record<string, number | string | null> {
  migration: string | null;
}

/**
 * Measures until `signal` aborts, or waits until the replica that measures is gone. It has a connection of its own, so that a small pool is
 * not occupied. `leader`: whether the leader has fallen silent. Never rejects.
 */
export async function measureCluster(
  databaseUrl: string,
  leader: { isSilent: () => boolean },
  metrics: ServiceMetrics,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const forget = () => gauges.forEach((name) => metrics.forget(name));
  forget();
  let client: Client | undefined;
  let reported = false;
  while (!signal.aborted) {
    try {
      client ??= await elected(databaseUrl);
      if (client !== undefined) record(metrics, (await client.query<Row>(figures, [leader.isSilent()])).rows[0]);
      reported = false;
    } catch (error) {
      // The lock is gone with its connection; another replica may have it by now.
      void client?.end().catch(() => undefined);
      client = undefined;
      forget();
      if (!reported) log.warn({ err: error }, "figures of the cluster not measured: retried");
      reported = true;
    }
    await delay(intervalMs, undefined, { signal }).catch(() => undefined);
  }
  await client?.end().catch(() => undefined);
}

/** The connection that holds the lock; undefined while another replica has it. */
async function elected(databaseUrl: string): Promise<Client | undefined> {
  const client = new Client({ connectionString: databaseUrl, connectionTimeoutMillis: 5_000 });
  // A broken connection fails its next query.
  client.on("error", () => undefined);
  let taken = false;
  try {
    await client.connect();
    const { rows } = await client.query<{ taken: boolean }>(
      `SELECT pg_try_advisory_lock(${advisoryLocks.figures}) AS taken`,
    );
    taken = rows[0]?.taken === true;
    return taken ? client : undefined;
  } finally {
    if (!taken) await client.end().catch(() => undefined);
  }
}

function record(metrics: ServiceMetrics, row: Row | undefined): void {
  if (row === undefined) return;
  const number = (name: string) => Number(row[name] ?? 0);
  for (const state of ["queued", "claimed", "dead"] as const)
    metrics.set("parley_inbox_rows", { state }, number(state));
  metrics.set("parley_inbox_oldest_seconds", { behind: "leader" }, number("behindLeader"));
  metrics.set("parley_inbox_oldest_seconds", { behind: "session" }, number("behindSession"));
  for (const state of ["pending", "sending", "unknown"] as const)
    metrics.set("parley_outbox_rows", { state }, number(state));
  metrics.set("parley_outbox_oldest_seconds", number("unsent"));
  for (const state of ["running", "parked"] as const) metrics.set("parley_turns_open", { state }, number(state));
  metrics.set("parley_waiting", { for: "approval" }, number("approvals"));
  metrics.set("parley_waiting", { for: "question" }, number("questions"));
  metrics.set("parley_waiting", { for: "tool" }, number("tools"));
  metrics.set("parley_schema_version", Number.parseInt(row.migration ?? "0", 10));
  metrics.set("parley_cluster_measured_timestamp_seconds", Date.now() / 1_000);
}

/** Exports the connections to PostgreSQL. */
export function exportPool({ pool }: Database, metrics: ServiceMetrics): void {
  metrics.collect("parley_store_pool_connections", () => {
    metrics.set("parley_store_pool_connections", { state: "used" }, pool.totalCount - pool.idleCount);
    metrics.set("parley_store_pool_connections", { state: "idle" }, pool.idleCount);
    metrics.set("parley_store_pool_connections", { state: "waiting" }, pool.waitingCount);
  });
}
