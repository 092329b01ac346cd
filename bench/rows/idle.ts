// At rest: duration of the start, memory use, and restart time of one service.
import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "@parley/local";
import type { Row } from "../row.ts";
import { memory, percentile } from "../measure.ts";
import { clusterPids } from "./throughput.ts";

export async function idle(cluster: Cluster, readyMs: number): Promise<Row[]> {
  // Services collect the memory of their start after 5 s, and the store closes connections that are idle for 10 s.
  await delay(20_000);
  const services = cluster
    .replicas()
    .flatMap((replica) =>
      replica.process === null ? [] : [{ name: replica.service, ...memory([replica.process.pid]) }],
    );
  const agent = services.find(({ name }) => name === "agent-core") ?? { rssMib: Number.NaN, pssMib: Number.NaN };
  const whole = memory(clusterPids(cluster));
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
    {
      what: "memory, idle, agent-core",
      measured: `${agent.rssMib.toFixed(0)} MiB RSS (PSS ${agent.pssMib.toFixed(0)})`,
      target: "≤ 95 MiB RSS",
      isMet: agent.rssMib <= 95,
    },
    {
      what: "memory, idle, four services and their servers",
      measured: `${whole.rssMib.toFixed(0)} MiB RSS (PSS ${whole.pssMib.toFixed(0)})`,
      target: "≤ 400 MiB RSS",
      isMet: whole.rssMib <= 400,
    },
  ];
}
