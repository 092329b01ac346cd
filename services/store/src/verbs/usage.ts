// Adding up what model calls have used and cost.
import type { InputOf, OutputOf, store } from "@parley/contracts";
import { withClient, type Database } from "../database.ts";

interface Row {
  day: string;
  model: string;
  calls: number;
  input: number;
  output: number;
  cache_read: number;
  cache_write: number;
  micros: number;
  unpriced: number;
}

/** A sum of one field of the stored usage. */
const total = (field: string) => `coalesce(sum((s.usage::json ->> '${field}')::bigint), 0)::bigint`;

export async function report(
  database: Database,
  { sinceDay, sessionId }: InputOf<typeof store.usageReport>,
): Promise<OutputOf<typeof store.usageReport>> {
  return withClient(database, async (client) => {
    const { rows } = await client.query<Row>(
      `SELECT to_char(s.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, s.model, count(*)::int AS calls,
              ${total("inputTokens")} AS input, ${total("outputTokens")} AS output,
              ${total("cacheReadTokens")} AS cache_read, ${total("cacheWriteTokens")} AS cache_write,
              coalesce(sum(s.cost_micros), 0)::bigint AS micros, count(*) FILTER (WHERE s.cost_micros IS NULL)::int AS unpriced
       FROM parley.steps s JOIN parley.turns t ON t.id = s.turn_id
       WHERE s.kind = 'model' AND s.created_at >= ($1::date)::timestamp AT TIME ZONE 'UTC' AND ($2::uuid IS NULL OR t.session_id = $2)
       GROUP BY 1, 2 ORDER BY 1, 2`,
      [sinceDay, sessionId ?? null],
    );
    return {
      rows: rows.map((row) => ({
        day: row.day,
        model: row.model,
        calls: row.calls,
        usage: {
          inputTokens: row.input,
          outputTokens: row.output,
          cacheReadTokens: row.cache_read,
          cacheWriteTokens: row.cache_write,
        },
        cost: { micros: row.micros, unpricedCalls: row.unpriced },
      })),
    };
  });
}
