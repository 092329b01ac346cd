// At rest: duration of the start, memory use as the images run the services (bundles) and from source, and restart time of one service.
import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "@parley/local";
import type { Row } from "../row.ts";
import { memory, percentile, type Memory } from "../measure.ts";
import { clusterPids } from "./throughput.ts";

/** The start, the restart of a service and the memory of a cluster that runs from source. */
export async function idle(cluster: Cluster, readyMs: number): Promise<Row[]> {
  const used = await memoryAtRest(cluster);
  const restarts: number[] = [];
  for (const { service, number } of cluster.replicas()) {
    const begin = performance.now();
    await cluster.kill(service, number, "SIGKILL");
    await cluster.whenReady(service, number);
    restarts.push(performance.now() - begin);
  }
  const slowest = percentile(restarts, 1);
  return [
    { what: "ready, warm", measured: `${(readyMs / 1000).toFixed(2)} s`, target: "≤ 5 s", isMet: readyMs <= 5_000 },
    {
      what: "one service killed → ready again",
      measured: `slowest ${slowest.toFixed(0)} ms`,
      target: "≤ 1 s",
      isMet: slowest <= 1_000,
    },
    { what: "memory, idle, from source: agent-core", measured: text(used.agent), target: "", isMet: undefined },
    { what: "memory, idle, from source: everything", measured: text(used.all), target: "", isMet: undefined },
  ];
}

/** The memory of a cluster that runs the bundles, like the images. */
export async function idleBundles(cluster: Cluster): Promise<Row[]> {
  const { agent, all } = await memoryAtRest(cluster);
  return [
    {
      what: "memory, idle, agent-core",
      measured: text(agent),
      target: "≤ 95 MiB RSS",
      isMet: agent.rssMib <= 95,
    },
    {
      what: "memory, idle, four services and their servers",
      measured: text(all),
      target: "≤ 400 MiB RSS",
      isMet: all.rssMib <= 400,
    },
  ];
}

async function memoryAtRest(cluster: Cluster): Promise<{ agent: Memory; all: Memory }> {
  // Services collect the memory of their start after 5 s, and the store closes connections that are idle for 10 s.
  await delay(20_000);
  const agents = cluster
    .replicas()
    .flatMap(({ service, process }) => (service === "agent-core" && process !== null ? [process.pid] : []));
  return { agent: memory(agents), all: memory(clusterPids(cluster)) };
}

const text = ({ rssMib, pssMib }: Memory) => `${rssMib.toFixed(0)} MiB RSS (PSS ${pssMib.toFixed(0)})`;
