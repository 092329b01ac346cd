// Alerts, boards, runbooks and the manifests around them: every metric exists, every alert has its page.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";

import { metricCatalog, type MetricDefinition } from "@parley/chassis";
import { services } from "@parley/contracts";
import { debianBinary, sharedCacheDir } from "@parley/local";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { parse } from "yaml";
import { z } from "zod";

import { at, kustomization, parseFile } from "./support/manifests.ts";
import { read, root } from "./support/repository.ts";

const Rules = z.strictObject({
  groups: z.array(
    z.strictObject({
      name: z.string(),
      rules: z.array(
        z.strictObject({
          alert: z.string(),
          expr: z.string(),
          for: z.string(),
          labels: z.strictObject({ severity: z.enum(["critical", "warning"]) }),
          annotations: z.strictObject({ summary: z.string(), runbook: z.string() }),
        }),
      ),
    }),
  ),
});
const Board = z.looseObject({
  uid: z.string(),
  panels: z.array(z.looseObject({ id: z.number(), targets: z.array(z.looseObject({ expr: z.string() })).min(1) })),
});

const rules = Rules.parse(parse(read("infra/observability/rules.yaml"))).groups.flatMap((group) => group.rules);
const boardFiles = globSync("infra/observability/boards/*.json").map((path) => path.replaceAll("\\", "/"));
const boards = boardFiles.map((path) => Board.parse(JSON.parse(read(path))));
const catalog: Record<string, MetricDefinition> = metricCatalog;

/** Throws unless every metric and label of a PromQL expression is in the catalog. */
function checkExpression(expression: string): void {
  const used = [...expression.matchAll(/\b(parley_[a-z_]+)(?:\{([^}]*)\})?/g)];
  assert.ok(used.length > 0 || expression.includes("process_"), `no metric in ${expression}`);
  for (const [, name = "", selector = ""] of used) {
    const histogram = name.replace(/_(bucket|sum|count)$/, "");
    const definition = catalog[name] ?? catalog[histogram];
    assert.ok(definition !== undefined, `${name} in ${expression}`);
    assert.equal(name !== histogram, definition.kind === "histogram" && name !== histogram, expression);
    for (const [, label = "", operator = "", text = ""] of selector.matchAll(/(\w+)(=~|!~|=|!=)"([^"]*)"/g)) {
      const values = definition.labels[label];
      assert.ok(values !== undefined || label === "service", `label ${label} of ${name}`);
      for (const value of operator.includes("~") ? text.split("|") : [text])
        if (values !== undefined && values !== "named")
          assert.ok(values.includes(value), `${name}{${label}="${value}"}`);
    }
    if (definition.kind === "counter") assert.match(expression, /rate\(|increase\(/, expression);
  }
}

describe("the alerts", () => {
  test("are at most 15, and use only metrics and labels of the catalog", () => {
    assert.ok(rules.length <= 15);
    for (const { expr } of rules) checkExpression(expr);
  });

  test("have a page each: what people notice, three commands, what to do, when to wake somebody", () => {
    const pages = globSync("docs/runbooks/*.md").map((path) => path.replaceAll("\\", "/"));
    assert.deepEqual(
      pages.filter((path) => !path.endsWith("README.md")).toSorted(),
      rules.map(({ annotations }) => annotations.runbook).toSorted(),
    );
    for (const { alert, expr, annotations } of rules) {
      const page = read(annotations.runbook);
      assert.match(page, new RegExp(`^# ${alert}\n`));
      assert.ok(page.includes(`\`\`\`promql\n${expr}\n\`\`\``), alert);
      const headings = [...page.matchAll(/^## (.*)$/gm)].map((match) => match[1]);
      assert.deepEqual(headings, ["What people notice", "Look", "Do", "When to wake somebody"], alert);
      const commands = /```sh\n([^`]*)```/.exec(page)?.[1]?.trim().split("\n") ?? [];
      assert.equal(commands.length, 3, alert);
      assert.ok(read("docs/runbooks/README.md").includes(`[${alert}](`), alert);
    }
  });

  test("are the same for the Prometheus operator", () => {
    const [operator] = parseFile("k8s/components/prometheus/rules.yaml");
    assert.equal(at(operator, "kind"), "PrometheusRule");
    assert.deepEqual(at(operator, "spec"), parse(read("infra/observability/rules.yaml")));
  });
});

const promtool = await debianBinary("promtool", "prometheus", sharedCacheDir).then(
  ({ path }) => path,
  () => undefined,
);

describe("the alerts in Prometheus", { skip: promtool === undefined ? "promtool is not available" : false }, () => {
  const folder = join(root, "infra/observability");
  const run = (...words: string[]) => spawnSync(promtool ?? "", words, { encoding: "utf8" });

  test("are each fired by the fault that they name, and cleared after it", () => {
    const Tests = z.object({
      tests: z.array(
        z.object({
          alert_rule_test: z.array(z.object({ alertname: z.string(), exp_alerts: z.array(z.unknown()) })),
        }),
      ),
    });
    const cases = Tests.parse(parse(read("infra/observability/rules.test.yaml"))).tests.flatMap(
      (each) => each.alert_rule_test,
    );
    for (const { alert } of rules) {
      const states = cases.filter(({ alertname }) => alertname === alert).map((each) => each.exp_alerts.length);
      assert.ok(states.join(" ").includes("0 1 0"), `${alert}: ${states.join(" ")}`);
    }
    execFileSync(promtool ?? "", ["test", "rules", join(folder, "rules.test.yaml")], { stdio: "pipe" });
  });

  test("fail the check when an expression is wrong", async () => {
    await using cleanup = new Cleanup();
    const place = await temporaryFolder(cleanup);
    cpSync(folder, place, { recursive: true });
    const file = join(place, "rules.yaml");
    assert.equal(run("check", "rules", file).status, 0);
    const text = readFileSync(file, "utf8");
    writeFileSync(
      file,
      text.replace("max(parley_outbox_oldest_seconds) > 120", "max(parley_outbox_oldest_seconds) > 1200"),
    );
    // Only the tests of this alert: all of them take seconds.
    const Tests = z.looseObject({
      tests: z.array(z.looseObject({ alert_rule_test: z.array(z.looseObject({ alertname: z.string() })) })),
    });
    const all = Tests.parse(parse(read("infra/observability/rules.test.yaml")));
    const tests = all.tests.filter((each) =>
      each.alert_rule_test.some(({ alertname }) => alertname === "ParleyAnswersNotSent"),
    );
    writeFileSync(join(place, "rules.test.yaml"), JSON.stringify({ ...all, tests }));
    const { status, stdout, stderr } = run("test", "rules", join(place, "rules.test.yaml"));
    assert.equal(status, 1, stdout + stderr);
    assert.match(stdout + stderr, /alertname: ParleyAnswersNotSent/);
  });
});

test("the boards use only metrics and labels of the catalog, and all of its metrics are on a board or in a rule", () => {
  const expressions = boards.flatMap(({ panels }) => panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)));
  for (const each of expressions) checkExpression(each);
  const used = [...expressions, ...rules.map(({ expr }) => expr)].join("\n");
  const rest = Object.keys(catalog).filter((name) => !new RegExp(`\\b${name}(_bucket|_sum|_count)?\\b`).test(used));
  // For a closer look with the help of docs/metrics.md.
  assert.deepEqual(rest.toSorted(), [
    "parley_bad_payloads_total",
    "parley_checkpoint_failures_total",
    "parley_hook_runs_total",
    "parley_hook_seconds",
    "parley_memory_consolidations_total",
    "parley_schedule_due_total",
    "parley_tool_faults_total",
  ]);
  for (const { panels } of boards) assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
});

test("the component scrapes every service and lets only Prometheus reach the health port", () => {
  const [monitor] = parseFile("k8s/components/prometheus/pod-monitor.yaml");
  assert.deepEqual(at(monitor, "spec", "selector", "matchExpressions", 0, "values"), services.toSorted());
  assert.deepEqual(at(monitor, "spec", "podMetricsEndpoints", 0, "port"), "health");
  const [policy] = parseFile("k8s/components/prometheus/network-policy.yaml");
  assert.deepEqual(at(policy, "spec", "podSelector"), at(monitor, "spec", "selector"));
  assert.deepEqual(at(policy, "spec", "policyTypes"), ["Ingress"]);
  assert.deepEqual(at(policy, "spec", "ingress", 0, "ports"), [{ protocol: "TCP", port: 8080 }]);
  const { resources } = kustomization("k8s/components/prometheus/kustomization.yaml");
  assert.ok(resources.includes("../../../infra/observability"));
  const generator = parse(read("infra/observability/kustomization.yaml")) as unknown;
  assert.deepEqual(
    z
      .array(z.string())
      .parse(at(generator, "configMapGenerator", 0, "files"))
      .toSorted(),
    boardFiles.map((path) => path.replace("infra/observability/", "")).toSorted(),
  );
});

test("Compose scrapes every service, hardens both containers and keeps Prometheus on loopback", () => {
  const Container = z.looseObject({
    image: z.string().regex(/:v?\d+\.\d+\.\d+$/),
    read_only: z.literal(true),
    cap_drop: z.tuple([z.literal("ALL")]),
    user: z.string().regex(/^[1-9]\d*:[1-9]\d*$/),
    mem_limit: z.string(),
    pids_limit: z.number(),
    logging: z.looseObject({ driver: z.literal("json-file") }),
    networks: z.array(z.string()).default([]),
    ports: z.array(z.string()).default([]),
  });
  const Override = z.looseObject({
    services: z.strictObject({
      // Elsewhere only the container itself reads the metrics of a tool-runner.
      "tool-runner": z.strictObject({ environment: z.strictObject({ PARLEY_HEALTH_HOST: z.literal("0.0.0.0") }) }),
      prometheus: Container.extend({ command: z.array(z.string()) }),
      grafana: Container.extend({ network_mode: z.literal("service:prometheus"), environment: z.unknown() }),
    }),
    configs: z.record(z.string(), z.strictObject({ file: z.string() })),
  });
  const { services: containers, configs } = Override.parse(parse(read("infra/docker/observability.yml")));
  const { prometheus } = containers;
  assert.deepEqual(
    prometheus.networks.toSorted(),
    ["observability", ...services.map((service) => `bus-${service}`)].toSorted(),
  );
  assert.ok(prometheus.command.includes("--web.listen-address=127.0.0.1:9090"));
  assert.deepEqual(prometheus.ports, ["127.0.0.1:${GRAFANA_PORT:-3000}:3000"]);
  assert.equal(
    at(containers.grafana.environment, "GF_SECURITY_ADMIN_PASSWORD__FILE"),
    "/run/secrets/parley/GRAFANA_PASSWORD",
  );
  for (const { file } of Object.values(configs)) assert.ok(read(file).length > 0, file);
  const scrape: unknown = parse(read("infra/observability/prometheus.yml"));
  const names = at(scrape, "scrape_configs", 0, "dns_sd_configs", 0, "names");
  assert.deepEqual(z.array(z.string()).parse(names).toSorted(), services.toSorted());
});
