// The metrics every service has. A service adds its own to the same registry.

import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

export { Counter, Gauge, Histogram };

export interface ServiceMetrics {
  registry: Registry;
  badPayloads: Counter<"subject">;
}

export function createMetrics(service: string): ServiceMetrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry });
  const badPayloads = new Counter({
    name: "parley_bad_payloads_total",
    help: "Bus payloads that did not match their contract",
    labelNames: ["subject"],
    registers: [registry],
  });
  return { registry, badPayloads };
}
