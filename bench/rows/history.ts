// Measures whether a long history slows a turn down: the same turn in sessions with 10, 1,000 and 100,000 messages. The long
// sessions are compacted once before the measurement, as they would be in use.
import type { Cluster } from "@parley/local";
import { Client } from "pg";
import { z } from "zod";
import { post, turn, type Gateway } from "../client.ts";
import { percentile, sample } from "../measure.ts";
import type { Row } from "../row.ts";
import type { Baselines } from "./baselines.ts";

const sizes = [10, 1_000, 100_000];
/** The highest accepted extra cost of a turn after 100,000 messages, compared with ten. */
const maxRatio = 1.1;

export async function history(cluster: Cluster, gateway: Gateway, base: Baselines): Promise<Row[]> {
  const rows: Row[] = [];
  const p50s: number[] = [];
  for (const size of sizes) {
    const conversation = `history-${size}`;
    await turn(gateway, conversation, "hello");
    const sessionId = await fill(cluster, conversation, size);
    const compactedMs = await compact(gateway, sessionId);
    const firstMs = await turn(gateway, conversation, "hello");
    const p50 = percentile(await sample(100, 1, () => turn(gateway, conversation, "hello")), 0.5) - base.modelCallMs;
    p50s.push(p50);
    rows.push({
      what: `turn in a session of ${size.toLocaleString("en")} messages`,
      measured: `p50 ${p50.toFixed(1)} ms; compacting ${compactedMs.toFixed(0)} ms, first turn ${firstMs.toFixed(0)} ms`,
      target: "",
      isMet: undefined,
    });
  }
  const ratio = (p50s.at(-1) ?? Number.NaN) / (p50s[0] ?? Number.NaN);
  rows.push({
    what: "100,000 messages against ten",
    measured: `${ratio.toFixed(2)} times`,
    target: `≤ ${maxRatio} times`,
    isMet: ratio <= maxRatio,
  });
  return rows;
}

/** Writes messages to a session's log as if people had sent them. */
async function fill(cluster: Cluster, conversation: string, size: number): Promise<string> {
  const client = new Client({ connectionString: cluster.databaseUrl });
  await client.connect();
  try {
    const found = await client.query<{ id: string }>("SELECT id FROM parley.sessions WHERE key LIKE $1", [
      `%:${conversation}`,
    ]);
    const sessionId = z.string().parse(found.rows[0]?.id);
    await client.query(
      `WITH last AS (
         SELECT s.seq, (SELECT id FROM parley.turns WHERE session_id = s.id LIMIT 1) AS turn_id FROM parley.sessions s WHERE s.id = $1
       ), filled AS (
         INSERT INTO parley.messages (session_id, seq, turn_id, role, parts, model)
         SELECT $1, last.seq + n, last.turn_id, CASE WHEN n % 2 = 1 THEN 'user' ELSE 'assistant' END,
                '[{"type":"text","text":"A sentence or two, as they are said in a chat: number ' || n || '."}]',
                CASE WHEN n % 2 = 1 THEN NULL ELSE 'bench' END
         FROM last, generate_series(1, $2::int) AS n
       )
       UPDATE parley.sessions SET seq = seq + $2, message_count = message_count + $2 WHERE id = $1`,
      [sessionId, size],
    );
    return sessionId;
  } finally {
    await client.end();
  }
}

async function compact(gateway: Gateway, sessionId: string): Promise<number> {
  const begin = performance.now();
  const answer = await post(gateway, `/api/sessions/${sessionId}/compact`, {});
  if (answer.status !== 200) throw new Error(`compacting: ${answer.status} ${answer.text}`);
  return performance.now() - begin;
}
