// Sums the usage and cost of model calls.
import type { OutputOf, store } from "@parley/contracts";
import type { Handlers } from "../handler.ts";

interface Sums {
  calls: number;
  input: number;
  output: number;
  cache_read: number;
  cache_write: number;
  micros: number;
  unpriced: number;
}

interface Row extends Sums {
  day: string;
  model: string;
}

interface GroupRow extends Sums {
  name: string;
  session_id: string | null;
  p50: number | null;
  p95: number | null;
}

/** A sum of one field of the stored usage. */
const total = (field: string) => `coalesce(sum((usage ->> '${field}')::bigint), 0)::bigint`;

/** All model calls: calls of turns, for themselves or for an MCP server, summaries of sessions, and memory consolidations. */
const calls = `
  SELECT s.created_at, t.session_id, t.id AS turn_id, s.model, s.usage::json AS usage, s.cost_micros, s.duration_ms
  FROM parley.steps s JOIN parley.turns t ON t.id = s.turn_id WHERE s.kind = 'model' AND s.created_at >= $1::timestamptz
  UNION ALL
  SELECT e.created_at, e.session_id, e.turn_id, spent ->> 'model', spent -> 'usage', (spent ->> 'costMicros')::bigint, NULL
  FROM parley.events e, LATERAL (SELECT e.body::json -> 'spent' AS spent) AS of_body
  WHERE e.type = 'compacted' AND spent ->> 'model' IS NOT NULL AND e.created_at >= $1::timestamptz
  UNION ALL
  SELECT m.created_at, NULL, NULL, m.model, m.usage::json, m.cost_micros, NULL
  FROM parley.memory_consolidations m WHERE m.created_at >= $1::timestamptz`;

const sums = `count(*)::int AS calls, ${total("inputTokens")} AS input, ${total("outputTokens")} AS output,
  ${total("cacheReadTokens")} AS cache_read, ${total("cacheWriteTokens")} AS cache_write,
  coalesce(sum(calls.cost_micros), 0)::bigint AS micros, count(*) FILTER (WHERE calls.cost_micros IS NULL)::int AS unpriced`;

const groupSums = `${sums}, percentile_disc(0.5) WITHIN GROUP (ORDER BY calls.duration_ms) AS p50,
  percentile_disc(0.95) WITHIN GROUP (ORDER BY calls.duration_ms) AS p95`;

const mostExpensive = "ORDER BY micros DESC, input + output DESC, name LIMIT 50";

const groups = {
  model: `
    SELECT calls.model AS name, NULL AS session_id, ${groupSums}
    FROM (${calls}) AS calls WHERE $2::uuid IS NULL OR calls.session_id = $2 GROUP BY 1`,
  session: `
    SELECT coalesce(s.title, s.key) AS name, s.id::text AS session_id, ${groupSums}
    FROM (${calls}) AS calls JOIN parley.sessions s ON s.id = calls.session_id
    WHERE $2::uuid IS NULL OR calls.session_id = $2 GROUP BY s.id`,
  // The work of a sub-agent was begun by the message of the first turn of its tree.
  channel: `
    SELECT coalesce(i.channel, 'memory') AS name, NULL AS session_id, ${groupSums}
    FROM (${calls}) AS calls LEFT JOIN parley.turns t ON t.id = calls.turn_id
      LEFT JOIN parley.turns r ON r.id = coalesce(t.root_turn_id, t.id) LEFT JOIN parley.inbox i ON i.id = r.inbox_id
    WHERE $2::uuid IS NULL OR calls.session_id = $2 GROUP BY 1`,
} as const;

/** Percentiles of the times of model calls, by day. */
const latency = `
  SELECT to_char(s.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, count(*)::int AS calls,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY s.duration_ms) AS "p50Ms",
    percentile_disc(0.95) WITHIN GROUP (ORDER BY s.duration_ms) AS "p95Ms",
    percentile_disc(0.5) WITHIN GROUP (ORDER BY s.first_token_ms) AS "firstTokenP50Ms",
    percentile_disc(0.95) WITHIN GROUP (ORDER BY s.first_token_ms) AS "firstTokenP95Ms"
  FROM parley.steps s JOIN parley.turns t ON t.id = s.turn_id
  WHERE s.kind = 'model' AND s.duration_ms IS NOT NULL AND s.created_at >= $1::timestamptz AND ($2::uuid IS NULL OR t.session_id = $2)
  GROUP BY 1 ORDER BY 1`;

type Latency = OutputOf<typeof store.usageReport>["latency"][number];

export const usageHandlers = {
  async usageReport({ database }, { sinceDay, sessionId, by }) {
    const of = [`${sinceDay}T00:00:00Z`, sessionId ?? null];
    const times = await database.query<Latency>(latency, of);
    const { rows } = await database.query<Row>(
      `SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, model, ${sums}
       FROM (${calls}) AS calls WHERE $2::uuid IS NULL OR session_id = $2
       GROUP BY 1, 2 ORDER BY 1, 2`,
      of,
    );
    const grouped =
      by === undefined
        ? null
        : await database.query<GroupRow>(`SELECT * FROM (${groups[by]}) AS sums ${mostExpensive}`, of);
    return {
      latency: times.rows,
      rows: rows.map((row) => ({ day: row.day, model: row.model, ...sumsOf(row) })),
      ...(grouped === null
        ? {}
        : {
            groups: grouped.rows.map((row) => {
              const { name, session_id: sessionId, p50: p50Ms, p95: p95Ms } = row;
              return { name, sessionId, p50Ms, p95Ms, ...sumsOf(row) };
            }),
          }),
    };
  },
} satisfies Partial<Handlers>;

function sumsOf({ calls, input, output, cache_read, cache_write, micros, unpriced }: Sums) {
  return {
    calls,
    usage: { inputTokens: input, outputTokens: output, cacheReadTokens: cache_read, cacheWriteTokens: cache_write },
    cost: { micros, unpricedCalls: unpriced },
  };
}
