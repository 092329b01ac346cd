// Measures how long it takes until the next turn starts after the leader dies or hands over.
import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "@parley/local";
import { Client } from "pg";
import { post } from "../client.ts";
import type { Row } from "../row.ts";
import { percentile } from "../measure.ts";

export async function failover(cluster: Cluster): Promise<Row[]> {
  const client = new Client({ connectionString: cluster.databaseUrl });
  await client.connect();
  const once = async (signal: "SIGKILL" | "SIGTERM"): Promise<number> => {
    const { rows } = await client.query<{ holder: string; epoch: string }>(
      "SELECT holder, epoch FROM parley.leadership",
    );
    const leader = Number(/-(\d+)\//.exec(rows[0]?.holder ?? "")?.[1] ?? 1);
    const begin = Date.now();
    const back =
      signal === "SIGTERM" ? cluster.restart("agent-core", leader) : cluster.kill("agent-core", leader, signal);
    if (signal === "SIGKILL") await back;
    const send = () =>
      post({ url: cluster.httpUrl, token: cluster.token }, "/api/messages", {
        conversation: "failover",
        text: "hello",
      });
    await send();
    for (;;) {
      const claimed = await client.query<{ at: Date | null; idle: boolean }>(
        `SELECT (SELECT min(claimed_at) FROM parley.turns WHERE epoch > $1) AS at,
           NOT EXISTS (SELECT FROM parley.inbox WHERE state IN ('queued', 'claimed')) AS idle`,
        [rows[0]?.epoch],
      );
      const { at, idle } = claimed.rows[0] ?? { at: null, idle: false };
      // A leader that hands over may still have answered the message.
      if (at === null && idle) await send();
      if (at !== null) {
        await back;
        await cluster.whenReady("agent-core", leader);
        // The new standby must have seen the new leader.
        await delay(1_000);
        return at.getTime() - begin;
      }
      await delay(5);
    }
  };
  await delay(2_000);
  const killed: number[] = [];
  for (let count = 0; count < 10; count++) killed.push(await once("SIGKILL"));
  const handed: number[] = [];
  for (let count = 0; count < 6; count++) handed.push(await once("SIGTERM"));
  await client.end();
  const [p50, p95] = [percentile(killed, 0.5), percentile(killed, 0.95)];
  const [plannedP50, plannedP95] = [percentile(handed, 0.5), percentile(handed, 0.95)];
  return [
    {
      what: "kill -9 of the leader → next turn started",
      measured: `p50 ${p50} ms, p95 ${p95} ms`,
      target: "p50 ≤ 500 ms, p95 ≤ 1 s",
      isMet: p50 <= 500 && p95 <= 1_000,
    },
    {
      what: "planned hand-over → next turn started",
      measured: `p50 ${plannedP50} ms, p95 ${plannedP95} ms`,
      target: "p50 ≤ 100 ms, p95 ≤ 250 ms",
      isMet: plannedP50 <= 100 && plannedP95 <= 250,
    },
  ];
}
