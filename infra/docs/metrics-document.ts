// docs/metrics.md from the catalog of metrics. Pure.
import { metricCatalog, type MetricDefinition } from "@parley/chassis";

const groups: readonly { title: string; text: string; fits: (definition: MetricDefinition) => boolean }[] = [
  {
    title: "All services",
    text: "In addition, each service has the process metrics of prom-client (`process_…`, `nodejs_…`).",
    fits: ({ services }) => services.length === 0,
  },
  {
    title: "agent-core",
    text: "Figures of the leader are 0 or absent for standbys.",
    fits: ({ services }) => services.includes("agent-core"),
  },
  {
    title: "store",
    text: "One replica measures the figures of the whole cluster (inbox, outbox, turns, waiting, schema) every 10 s; the others do not export them.",
    fits: ({ services }) => services.includes("store"),
  },
  { title: "channel-gateway", text: "", fits: ({ services }) => services.includes("channel-gateway") },
  { title: "tool-runner", text: "", fits: ({ services }) => services.includes("tool-runner") },
];

function row([name, { kind, help, labels }]: [string, MetricDefinition]): string {
  const texts = Object.entries(labels).map(([label, values]) =>
    values === "named" ? `\`${label}\`` : `\`${label}\`: ${values.join(", ")}`,
  );
  return `| \`${name}\` | ${kind} | ${texts.join("; ")} | ${help} |`;
}

/** The whole page. */
export function metricsDocument(): string {
  const sections = groups.map(({ title, text, fits }) => {
    const rows = Object.entries<MetricDefinition>(metricCatalog)
      .filter(([, definition]) => fits(definition))
      .map(row);
    const table = ["| metric | type | labels | meaning |", "|---|---|---|---|", ...rows].join("\n");
    return `## ${title}\n\n${text === "" ? "" : `${text}\n\n`}${table}\n`;
  });
  return `# Metrics

Generated from \`packages/chassis/src/metric-catalog.ts\` by \`npm run docs\`; do not edit.

Each process serves \`/metrics\` in Prometheus's text format on its health listener. Units are in the names. A label whose values are not listed comes from configuration or code
(a model, a route, a tool); after 120 values further ones are counted as \`other\`. No label contains an id of a session, turn or person, or a text. Every metric has the label \`service\`.

${sections.join("\n")}`;
}
