// Sixty-four concurrent sessions: turns per second, and processor time per turn over all processes.
import type { Cluster } from "@parley/local";
import { turn, type Gateway } from "../client.ts";
import type { Row } from "../row.ts";
import { conversations } from "./turns.ts";
import { percentile, processorMs, sample, tree } from "../measure.ts";

export function clusterPids(cluster: Cluster): number[] {
  const replicas = cluster.replicas().flatMap((replica) => (replica.process === null ? [] : [replica.process.pid]));
  const { postgres, redis, nats } = cluster.servers;
  const servers = [postgres, redis, nats].flatMap((server) => (server === null ? [] : [server.current().pid]));
  return tree([...replicas, ...servers]);
}

export async function throughput(cluster: Cluster, gateway: Gateway): Promise<Row[]> {
  const lanes = Array.from({ length: 64 }, (_, lane) => conversations(`lane-${lane}`));
  const load = (count: number) => sample(count, 64, (lane) => turn(gateway, lanes[lane]?.() ?? "", "hello"));
  await load(500);
  const before = processorMs(clusterPids(cluster));
  const begin = performance.now();
  const count = 3_000;
  const durations = await load(count);
  const seconds = (performance.now() - begin) / 1000;
  const cost = (processorMs(clusterPids(cluster)) - before) / count;
  const rate = count / seconds;
  return [
    {
      what: "turns a second, 64 sessions, two cores for everything",
      measured: `${rate.toFixed(0)}/s (p50 ${percentile(durations, 0.5).toFixed(0)} ms, p99 ${percentile(durations, 0.99).toFixed(0)} ms)`,
      target: "≥ 450/s",
      isMet: rate >= 450,
    },
    {
      what: "processor time a turn, everything that runs",
      measured: `${cost.toFixed(2)} ms`,
      target: "≤ 4 ms",
      isMet: cost <= 4,
    },
  ];
}
