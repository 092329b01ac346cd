// The metrics of a service's process, as samples.
import type { ServiceName } from "@parley/contracts";
import type { TestCluster } from "@parley/testing";

export interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

/** `families`: `name kind` of each. `port`: of the health listener. */
export async function readMetrics(
  cluster: Pick<TestCluster, "lines">,
  service: ServiceName,
  port = healthPortOf(cluster, `${service}-1`),
): Promise<{ families: string[]; samples: Sample[]; text: string; port: number }> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return { ...parseMetrics(text), text, port };
}

/** Prometheus's text format. */
export function parseMetrics(text: string): { families: string[]; samples: Sample[] } {
  const families = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, kind]) => `${name} ${kind}`);
  const samples = [...text.matchAll(/^([a-z_]+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = "", labels = "", value]) => ({
    name,
    labels: Object.fromEntries(
      [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label = "", text = ""]) => [label, text]),
    ),
    value: Number(value),
  }));
  return { families, samples };
}

/** The port of the newest process of a replica, which its log contains. */
export function healthPortOf({ lines }: Pick<TestCluster, "lines">, replica: string): number {
  const line = lines.findLast((each) => each.startsWith(`${replica} `) && each.includes('"healthPort":'));
  return Number(/"healthPort":(\d+)/.exec(line ?? "")?.[1]);
}
