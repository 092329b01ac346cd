// Curves: turns a second by the number of sessions that work at the same time, by the length of a message, and by replicas.
import type { Cluster } from "@parley/local";
import { turn, type Gateway } from "../client.ts";
import { percentile, processorMs, sample } from "../measure.ts";
import type { Row } from "../row.ts";
import { clusterPids } from "./throughput.ts";
import { conversations } from "./turns.ts";

const sessionCounts = [1, 4, 16, 64, 256];
const messageLengths = [100, 1_000, 10_000, 100_000];

/** By sessions and by message length, in a cluster with one replica of each service. */
export async function curves(cluster: Cluster, gateway: Gateway): Promise<Row[]> {
  const rows: Row[] = [];
  for (const sessions of sessionCounts)
    rows.push(await load(cluster, [gateway], { what: `${sessions} sessions`, sessions, text: "hello" }));
  for (const length of messageLengths) {
    const what = `message of ${length.toLocaleString("en")} characters, 4 sessions`;
    rows.push(await load(cluster, [gateway], { what, sessions: 4, text: "word ".repeat(length / 5) }));
  }
  return rows;
}

/** 64 sessions over all gateways of a cluster. */
export async function replicated(cluster: Cluster, what: string): Promise<Row[]> {
  const gateways = cluster.httpUrls.map((url) => ({ url, token: cluster.token }));
  return [await load(cluster, gateways, { what, sessions: 64, text: "hello" })];
}

async function load(
  cluster: Cluster,
  gateways: readonly Gateway[],
  { what, sessions, text }: { what: string; sessions: number; text: string },
): Promise<Row> {
  const lanes = Array.from({ length: sessions }, (_, lane) => conversations(`${what}-${lane}`));
  const run = (count: number) =>
    sample(count, sessions, (lane) => {
      const gateway = gateways[lane % gateways.length];
      return gateway === undefined ? Promise.resolve() : turn(gateway, lanes[lane]?.() ?? "", text);
    });
  await run(2 * sessions);
  const count = Math.max(200, 6 * sessions);
  const before = processorMs(clusterPids(cluster));
  const begin = performance.now();
  const durations = await run(count);
  const seconds = (performance.now() - begin) / 1_000;
  const cost = (processorMs(clusterPids(cluster)) - before) / count;
  return {
    what: `curve: ${what}`,
    measured: `${(count / seconds).toFixed(0)}/s, p50 ${percentile(durations, 0.5).toFixed(0)} ms, ${cost.toFixed(1)} CPU-ms a turn`,
    target: "",
    isMet: undefined,
  };
}
