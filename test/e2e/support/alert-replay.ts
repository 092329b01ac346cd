// Evaluates alert rules with Prometheus's own promtool on metrics of a real cluster: scraped before a fault, during it and after it, and
// repeated every minute as if each of the three states had lasted long enough. Values are the scraped ones, rules the deployed ones.
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { metricCatalog, type MetricDefinition } from "@parley/chassis";
import { errorMessage } from "@parley/contracts";
import { parse } from "yaml";
import { z } from "zod";
import { parseMetrics, type Sample } from "./metrics.ts";

export interface Scrape {
  /** Epoch seconds. */
  at: number;
  /** With the label `instance`. */
  samples: readonly Sample[];
}

interface States {
  healthy: Scrape;
  faulty: Scrape;
  cleared: Scrape;
}

/** Minutes of each state: longer than every `for`, and than every window of the rules. */
const minutes = { healthy: 20, faulty: 90, cleared: 40 };

const rulesFile = new URL("../../../infra/observability/rules.yaml", import.meta.url).pathname;
const Rule = z.object({
  alert: z.string(),
  expr: z.string(),
  labels: z.record(z.string(), z.string()),
  annotations: z.record(z.string(), z.string()),
});
export const rules = z
  .object({ groups: z.array(z.object({ rules: z.array(Rule) })) })
  .parse(parse(readFileSync(rulesFile, "utf8")))
  .groups.flatMap((group) => group.rules);

/** The metrics of these health listeners. One that does not answer has no samples, as in Prometheus. */
export async function scrape(ports: Readonly<Record<string, number>>): Promise<Scrape> {
  const all = Object.entries(ports).map(async ([instance, port]) => {
    // A kept connection may be closed by the listener at the same moment, which would look like a process that is away.
    const headers = { connection: "close" };
    const text = await fetch(`http://127.0.0.1:${port}/metrics`, { headers }).then(
      (response) => response.text(),
      () => "",
    );
    return parseMetrics(text).samples.map((each) => ({ ...each, labels: { ...each.labels, instance } }));
  });
  return { at: Date.now() / 1_000, samples: (await Promise.all(all)).flat() };
}

/**
 * Rejects unless the alert is silent in the healthy state, fires in the faulty one, and is cleared after it. `labels`: those that its
 * expression leaves. `folder`: for promtool's input.
 */
export async function assertFiresAndClears(
  promtool: string,
  folder: string,
  { alert, labels = {}, ...states }: States & { alert: string; labels?: Readonly<Record<string, string>> },
): Promise<void> {
  const rule = rules.find((each) => each.alert === alert);
  if (rule === undefined) throw new Error(`no rule ${alert}`);
  const filled = Object.entries(rule.annotations).map(([name, text]) => [
    name,
    text.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => labels[label] ?? ""),
  ]);
  const firing = { exp_labels: { ...rule.labels, ...labels }, exp_annotations: Object.fromEntries(filled) as unknown };
  const expected = (minute: number, alerts: readonly unknown[]) => ({
    eval_time: `${minute}m`,
    alertname: alert,
    exp_alerts: alerts,
  });
  const { healthy, faulty, cleared } = minutes;
  const test = {
    interval: "1m",
    input_series: seriesOf(rule.expr, states),
    alert_rule_test: [
      expected(healthy - 1, []),
      expected(healthy + faulty - 1, [firing]),
      expected(healthy + faulty + cleared - 1, []),
    ],
  };
  await runTest(promtool, join(folder, `${alert}.test.yaml`), alert, [rulesFile], test);
}

/** Rejects unless a query has this one value on the metrics, which have lasted for minutes; undefined: an empty result. */
export async function assertValue(
  promtool: string,
  folder: string,
  query: string,
  state: Scrape,
  value: number | undefined,
): Promise<void> {
  const test = {
    interval: "1m",
    input_series: seriesOf(query, { healthy: state, faulty: state, cleared: state }),
    promql_expr_test: [
      {
        expr: query,
        eval_time: `${minutes.healthy}m`,
        exp_samples: value === undefined ? [] : [{ labels: "{}", value }],
      },
    ],
  };
  await runTest(promtool, join(folder, "query.test.yaml"), query, [], test);
}

async function runTest(
  promtool: string,
  file: string,
  title: string,
  ruleFiles: readonly string[],
  test: { input_series: { series: string; values: string }[] },
): Promise<void> {
  writeFileSync(file, JSON.stringify({ rule_files: ruleFiles, evaluation_interval: "1m", tests: [test] }));
  try {
    // Not synchronously: the links to the cluster's servers are in this process.
    await promisify(execFile)(promtool, ["test", "rules", file]);
  } catch (error) {
    const series = test.input_series.map((each) => `${each.series} ${changesOf(each.values)}`).join("\n");
    throw new Error(`${title}: ${errorMessage(error)}\n${series}`, { cause: error });
  }
}

/** The values without repetitions, shortened. */
function changesOf(values: string): string {
  const each = values.split(" ");
  return each
    .filter((value, index) => value !== each[index - 1])
    .join(" ")
    .slice(0, 600);
}

/** The samples of the metrics in an expression, a value a minute. */
function seriesOf(expression: string, { healthy, faulty, cleared }: States): { series: string; values: string }[] {
  const names = new Set(expression.match(/\bparley_[a-z_]+/g));
  const read = (scraped: Scrape) => {
    const used = scraped.samples.filter(({ name }) => names.has(name));
    return new Map(used.map(({ name, labels, value }) => [seriesName(name, labels), { name, value, at: scraped.at }]));
  };
  const states = [read(healthy), read(faulty), read(cleared)] as const;
  return [...new Set(states.flatMap((each) => [...each.keys()]))].map((series) => {
    const [before, during, after] = states.map((each) => each.get(series));
    const name = (before ?? during ?? after)?.name ?? "";
    const values = [
      ...phase(name, minutes.healthy, 0, before, before),
      ...phase(name, minutes.faulty, minutes.healthy, before, during),
      ...phase(name, minutes.cleared, minutes.healthy + minutes.faulty, during, after),
    ];
    return { series, values: values.join(" ") };
  });
}

interface Value {
  value: number;
  /** Epoch seconds of the scrape. */
  at: number;
}

/** The values of one state: a counter grows evenly, a time stays as far from its scrape as it was, a gauge stays. */
function phase(name: string, count: number, from: number, before?: Value, value?: Value): string[] {
  // A missing sample alone would leave the last value visible for five minutes.
  if (value === undefined) return Array.from({ length: count }, (_, index) => (index === 0 ? "stale" : "_"));
  const start = before === undefined ? value.value : Math.min(before.value, value.value);
  // A process that was restarted counts from 0.
  const isReset = before !== undefined && value.value < before.value;
  return Array.from({ length: count }, (_, index) => {
    if (name.endsWith("_timestamp_seconds")) return String((from + index) * 60 + value.value - value.at);
    if (!isCumulative(name)) return String(value.value);
    const first = isReset ? 0 : start;
    return String(first + ((value.value - first) * (index + 1)) / count);
  });
}

function isCumulative(name: string): boolean {
  const catalog: Record<string, MetricDefinition> = metricCatalog;
  return (catalog[name]?.kind ?? "histogram") !== "gauge";
}

function seriesName(name: string, labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).toSorted(([one], [other]) => one.localeCompare(other));
  return `${name}{${pairs.map(([label, value]) => `${label}="${value}"`).join(",")}}`;
}
