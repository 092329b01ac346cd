// Scheduled jobs: how late a job starts, and how long ten thousand jobs of one moment take when Redis is wiped meanwhile.
import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "@parley/local";
import { Client } from "pg";
import { redisCommand } from "../../test/chaos/faults.ts";
import { percentile } from "../measure.ts";
import type { Row } from "../row.ts";

const jobs = 10_000;
const single = 20;

export async function schedules(cluster: Cluster): Promise<Row[]> {
  const client = new Client({ connectionString: cluster.databaseUrl });
  await client.connect();
  /** Jobs of one kind, due from the given moment at intervals in milliseconds. */
  const make = async (kind: string, count: number, inMs: number, apartMs: number): Promise<Date> => {
    const { rows } = await client.query<{ due: Date }>(
      `INSERT INTO parley.schedules (id, name, schedule, anchor, time_zone, prompt, target, overlap, missed, after_run, keep_runs, enabled, next_due, created_by)
       SELECT $1 || '-' || n, $1, 'cron 0 * * * *', now(), 'Europe/Berlin', '"hello"', 'own', 'skip', 'run_once', 'disable', 5, true,
         date_trunc('milliseconds', now()) + ($3 + n * $4) * interval '1 millisecond', '{"sessionId":null,"turnId":null,"trust":"owner"}'
       FROM generate_series(1, $2::int) AS n RETURNING next_due AS due`,
      [kind, count, inMs, apartMs],
    );
    return rows[0]?.due ?? new Date();
  };
  const runs = async (kind: string) => {
    const { rows } = await client.query<{ late: string }>(
      `SELECT extract(epoch FROM i.received_at - r.due) * 1000 AS late FROM parley.schedule_runs r
       JOIN parley.inbox i ON i.id = r.inbox_id WHERE r.job_id LIKE $1`,
      [`${kind}-%`],
    );
    return rows.map(({ late }) => Number(late));
  };
  const all = async (kind: string, count: number) => {
    for (;;) {
      const late = await runs(kind);
      if (late.length >= count) return late;
      await delay(20);
    }
  };
  // Far enough in the future that a sweep has set the timer.
  await make("bench-one", single, 6_000, 200);
  const late = await all("bench-one", single);
  const due = await make("bench-many", jobs, 6_000, 0);
  await delay(due.getTime() - Date.now());
  await redisCommand(cluster.redisAdminUrl, "FLUSHALL");
  await all("bench-many", jobs);
  const tookMs = Date.now() - due.getTime();
  const { rows } = await client.query<{ rows: number }>(
    "SELECT count(*)::int AS rows FROM parley.inbox WHERE channel = 'internal' AND external_id LIKE 'cron:bench-many-%'",
  );
  await client.end();
  const kept = rows[0]?.rows ?? 0;
  return [
    {
      what: "a job's due time → its row in the inbox",
      measured: `p50 ${Math.round(percentile(late, 0.5))} ms, p95 ${Math.round(percentile(late, 0.95))} ms late`,
      target: "p50 50 ms, p95 250 ms",
      isMet: percentile(late, 0.5) <= 50 && percentile(late, 0.95) <= 250,
    },
    {
      what: `${jobs} jobs of one moment, Redis wiped in the middle`,
      measured: `${kept} rows, the last after ${(tookMs / 1_000).toFixed(1)} s`,
      target: `${jobs} rows`,
      isMet: kept === jobs,
    },
  ];
}
