// The metrics of a process: those of the catalog that its service has, all visible from its start.

import type { ServiceName } from "@parley/contracts";
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

import { metricCatalog, type LabelsOf, type MetricDefinition, type MetricName, type NameOf } from "./metric-catalog.ts";
import { version } from "./version.ts";

/** Values of a label from configuration or code; further ones are counted as `other`, so that series cannot grow without limit. */
const maxNamedValues = 120;

type Values = Readonly<Record<string, string>>;

/** The labels are an argument only where a metric has some. */
type WithLabels<N extends MetricName, Rest extends unknown[]> = string extends keyof LabelsOf<N>
  ? Rest
  : [labels: LabelsOf<N>, ...Rest];

export interface ServiceMetrics {
  readonly registry: Registry;
  /** Adds to a counter; 1 by default. */
  count<N extends NameOf<"counter">>(name: N, ...args: WithLabels<N, [by?: number]>): void;
  /** Sets a gauge. */
  set<N extends NameOf<"gauge">>(name: N, ...args: WithLabels<N, [value: number]>): void;
  /** Calls `read` at each scrape; it sets the gauge. A failure leaves the value as it is. */
  collect(name: NameOf<"gauge">, read: () => void | Promise<void>): void;
  /** Removes all values of a gauge, which is then no longer exported. */
  forget(name: NameOf<"gauge">): void;
  /**
   * Exports a counter at 0 for these labels and all values of its other, closed labels. Call it before the first event: Prometheus does
   * not see an increase when a series appears.
   */
  expect<N extends NameOf<"counter">>(name: N, labels: Partial<LabelsOf<N>>): void;
  /** Adds a value to a histogram. */
  observe<N extends NameOf<"histogram">>(name: N, ...args: WithLabels<N, [value: number]>): void;
}

/** Empty counters with closed label sets start at 0, so that their first increase is visible; larger products do not. */
const maxZeroSeries = 20;

export function createMetrics(service: ServiceName): ServiceMetrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry });
  const created = new Map<string, Counter | Gauge | Histogram>();
  const readers = new Map<string, () => void | Promise<void>>();
  const known = new Map<string, Set<string>>();
  for (const [name, definition] of Object.entries<MetricDefinition>(metricCatalog)) {
    if (definition.services.length > 0 && !definition.services.includes(service)) continue;
    created.set(
      name,
      create(name, definition, registry, () => readers.get(name)?.()),
    );
  }

  /** The metric and the labels and value of a call; a service without the metric records nothing. */
  const target = (name: MetricName, args: readonly unknown[]) => {
    const definition: MetricDefinition = metricCatalog[name];
    const labelled = Object.keys(definition.labels).length > 0;
    const labels = labelled ? bounded(name, definition, args[0] as Values, known) : {};
    return { metric: created.get(name), labels, value: (labelled ? args[1] : args[0]) as number | undefined };
  };
  const metrics: ServiceMetrics = {
    registry,
    count(name, ...args) {
      const { metric, labels, value = 1 } = target(name, args);
      if (metric instanceof Counter) metric.inc(labels, value);
    },
    set(name, ...args) {
      const { metric, labels, value = 0 } = target(name, args);
      if (metric instanceof Gauge) metric.set(labels, value);
    },
    collect(name, read) {
      readers.set(name, read);
    },
    forget(name) {
      const metric = created.get(name);
      metric?.reset();
      // Without labels a reset is a zero.
      if (Object.keys(metricCatalog[name].labels).length === 0) metric?.remove({});
    },
    expect(name, labels) {
      const { metric } = target(name, [labels]);
      if (!(metric instanceof Counter)) return;
      const given = bounded(name, metricCatalog[name], labels as Values, known);
      const rest = Object.entries<MetricDefinition["labels"][string]>(metricCatalog[name].labels).filter(
        ([label]) => !(label in given),
      );
      for (const each of zeroSeries(Object.fromEntries(rest))) metric.inc({ ...given, ...each }, 0);
    },
    observe(name, ...args) {
      const { metric, labels, value = 0 } = target(name, args);
      if (metric instanceof Histogram) metric.observe(labels, value);
    },
  };
  metrics.set("parley_build_info", { version }, 1);
  return metrics;
}

function create(
  name: string,
  { kind, help, labels, buckets }: MetricDefinition,
  registry: Registry,
  collect: () => void | Promise<void>,
): Counter | Gauge | Histogram {
  const options = { name, help, labelNames: Object.keys(labels), registers: [registry] };
  if (kind === "histogram") return new Histogram({ ...options, buckets: [...buckets] });
  if (kind === "gauge") {
    const gauge = new Gauge({ ...options, collect: () => quietly(collect) });
    // 0 would be a time, and would hide from `absent` that nothing was measured; or a full disk, which is an alert.
    if (/_(?:timestamp_seconds|free_bytes)$/.test(name)) gauge.remove({});
    return gauge;
  }
  const counter = new Counter(options);
  for (const each of zeroSeries(labels)) counter.inc(each, 0);
  return counter;
}

/** A scrape reports the other metrics even if one cannot be read. */
async function quietly(read: () => void | Promise<void>): Promise<void> {
  try {
    await read();
  } catch {
    return;
  }
}

function zeroSeries(labels: MetricDefinition["labels"]): Values[] {
  let series: Values[] = [{}];
  for (const [label, values] of Object.entries(labels)) {
    if (values === "named") return [];
    series = values.flatMap((value) => series.map((each) => ({ ...each, [label]: value })));
  }
  return Object.keys(labels).length === 0 || series.length > maxZeroSeries ? [] : series;
}

function bounded(name: string, { labels }: MetricDefinition, given: Values, known: Map<string, Set<string>>): Values {
  const kept = Object.entries(given).map(([label, value]) => {
    const values = labels[label];
    if (values !== "named") return [label, values?.includes(value) === true ? value : "other"];
    const key = `${name} ${label}`;
    const seen = known.get(key) ?? new Set();
    known.set(key, seen);
    if (seen.has(value) || seen.size < maxNamedValues) seen.add(value);
    return [label, seen.has(value) ? value : "other"];
  });
  return Object.fromEntries(kept) as Values;
}
