// At rest: duration of the start, memory use, and restart time of one service.
import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "@parley/local";
import type { Row } from "../row.ts";
import { memory, percentile } from "../measure.ts";
import { clusterPids } from "./throughput.ts";

export async function idle(cluster: Cluster, readyMs: number): Promise<Row[]> {
  await delay(3_000);
  const services = cluster
    .replicas()
    .flatMap((replica) =>
      replica.process === null ? [] : [{ name: replica.service, ...memory([replica.process.pid]) }],
    );
  const largest = services.reduce((most, each) => (each.rssMib > most.rssMib ? each : most));
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
    { what: "ready, warm", measured: `${(readyMs / 1000).toFixed(2)} s`, reach: "≤ 5 s", reached: readyMs <= 5_000 },
    {
      what: "one service killed → ready again",
      measured: `slowest ${slowest.toFixed(0)} ms`,
      reach: "≤ 1 s",
      reached: slowest <= 1_000,
    },
    {
      what: "memory, idle, the largest service",
      measured: `${largest.rssMib.toFixed(0)} MiB RSS (${largest.name}; PSS ${largest.pssMib.toFixed(0)})`,
      reach: "≤ 110 MiB",
      reached: largest.rssMib <= 110,
    },
    {
      what: "memory, idle, four services and their servers",
      measured: `${whole.rssMib.toFixed(0)} MiB RSS (PSS ${whole.pssMib.toFixed(0)})`,
      reach: "≤ 550 MiB",
      reached: whole.pssMib <= 550,
    },
  ];
}
