// The metrics of a running cluster: exactly the documented ones, with the documented labels, in a bounded number of series.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { lineFields, logFields, metricCatalog, type MetricDefinition } from "@parley/chassis";
import { operations, services, store, type ServiceName } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { metricsDocument } from "../../infra/docs/metrics-document.ts";
import { startClusterFixture, type ClusterFixture } from "./presets/support/fixture.ts";
import { call } from "./support/jobs.ts";
import { readMetrics, type Sample } from "./support/metrics.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

/** One replica of each service; a cluster with two of each has twice as many: 1,500. */
const maxSeries = 750;
const sessions = 100;

const catalog = Object.entries<MetricDefinition>(metricCatalog);

test("docs/metrics.md contains the catalog", () => {
  const page = readFileSync(new URL("../../docs/metrics.md", import.meta.url), "utf8");
  assert.equal(page, metricsDocument(), "stale: run npm run docs");
});

describe("a cluster that has answered", () => {
  let fixture: ClusterFixture;
  const scraped = new Map<ServiceName, Awaited<ReturnType<typeof readMetrics>>>();
  const samples = () => [...scraped.values()].flatMap((each) => each.samples);
  const value = (name: string, labels: Record<string, string> = {}) =>
    samples()
      .filter((each) => each.name === name && Object.entries(labels).every(([key, text]) => each.labels[key] === text))
      .reduce<number | undefined>((sum, each) => (sum ?? 0) + each.value, undefined);

  before(async () => {
    fixture = await startClusterFixture(cleanup, null, {
      replicas: { "agent-core": 1 },
      settings: `[session]\npolicy = "per_conversation"\n`,
    });
    for (let number = 0; number < 12; number++) await fixture.turn(`say: ${number}`, `conversation-${number}`);
    await fixture.turn('tool: ls {"path":"."}\nthen\nsay: listed', "conversation-0");
    await fetch(`${fixture.cluster.httpUrls[0]}/api/status`, { headers: { authorization: "Bearer wrong" } });
    // The refusal is recorded after its response.
    await pollUntil(async () => {
      const { entries } = await call(fixture.client, "/api/audit", store.auditList.output);
      return entries.find(({ action }) => action === "login.refused");
    }, "the audit entry of the refused request");
    await scrape();
  });

  async function scrape(): Promise<void> {
    for (const service of services) scraped.set(service, await readMetrics(fixture.cluster, service));
  }

  test("exports exactly the families of the catalog in each service", () => {
    for (const service of services) {
      const expected = catalog
        .filter(([, each]) => each.services.length === 0 || each.services.includes(service))
        .map(([name, { kind }]) => `${name} ${kind}`);
      const { families } = scraped.get(service) ?? { families: [] };
      const own = families.filter((family) => family.startsWith("parley_"));
      assert.deepEqual(own.toSorted(), expected.toSorted(), service);
    }
  });

  test("uses only documented labels and values, and no id", () => {
    const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-/;
    for (const { name, labels } of samples().filter((each) => each.name.startsWith("parley_"))) {
      const family = name.replace(/_(bucket|sum|count)$/, "");
      const definition = catalog.find(([known]) => known === name || known === family)?.[1];
      assert.ok(definition !== undefined, name);
      for (const [label, text] of Object.entries(labels)) {
        if (label === "service" || (label === "le" && definition.kind === "histogram")) continue;
        const values = definition.labels[label];
        assert.ok(values !== undefined, `${name}: ${label}`);
        if (values !== "named") assert.ok(values.includes(text), `${name}: ${label}="${text}"`);
        assert.doesNotMatch(text, uuid, `${name}: ${label}`);
        assert.doesNotMatch(text, /conversation-|test/, `${name}: ${label}`);
      }
    }
  });

  test("has at most 750 series with 100 sessions, and does not grow with them", async () => {
    const count = (all: readonly Sample[]) => all.filter(({ name }) => name.startsWith("parley_")).length;
    const before = count(samples());
    assert.ok(before <= maxSeries, `${before} series`);
    const batch = 8;
    for (let number = 12; number < sessions; number += batch) {
      const size = Math.min(batch, sessions - number);
      const turns = Array.from({ length: size }, (_, index) => fixture.turn("say: more", `further-${number + index}`));
      await Promise.all(turns);
    }
    await scrape();
    const after = count(samples());
    assert.ok(after <= maxSeries, `${after} series`);
    // Time alone may add a few, such as a request that only a timer sends.
    assert.ok(after - before < 20, `${before} series, ${after} after ${sessions - 12} more sessions`);
  });

  test("reports the leader, the turns, the model calls and the requests", () => {
    assert.equal(value("parley_leader"), 1);
    assert.equal(value("parley_takeovers_total"), 1);
    assert.ok((value("parley_epoch") ?? 0) >= 1);
    assert.equal(value("parley_turns_total", { outcome: "done" }), sessions + 1);
    assert.equal(value("parley_turn_seconds_count"), sessions + 1);
    assert.equal(value("parley_turn_first_text_seconds_count"), sessions + 1);
    assert.equal(value("parley_model_calls_total", { provider: "rehearsal", outcome: "ok" }), sessions + 2);
    assert.equal(value("parley_tool_calls_total", { tool: "ls", state: "done" }), 1);
    // A request without an answer in time is repeated, and counted again.
    assert.ok((value("parley_store_requests_total", { verb: "inbox.put", outcome: "ok" }) ?? 0) > sessions);
    assert.equal(value("parley_http_refused_total", { reason: "token" }), 1);
    assert.ok((value("parley_http_requests_total", { route: "/api/messages", status: "2xx" }) ?? 0) > sessions);
    assert.equal(value("parley_bus_connected"), services.length);
    assert.ok((value("parley_workspace_disk_free_bytes") ?? 0) > 0);
  });

  test("reports where the time of a turn went", async () => {
    const turn = await fixture.turn('tool: ls {"path":"."}\nthen\nsay: listed', "traced");
    const answer = await fixture.client.fetch(`/api/turns/${turn.turnId}/trace`);
    const trace = store.turnTrace.output.parse(await answer.json());
    assert.deepEqual(
      trace.spans.map(({ kind, name }) => `${kind} ${name}`),
      ["queue ", "model rehearsal", "tool ls", "model rehearsal"],
    );
    for (const { startedAt, endedAt } of trace.spans) assert.ok(endedAt !== null && startedAt <= endedAt);
    const last = await fixture.client.fetch("/api/turns/last/trace");
    assert.equal(store.turnTrace.output.parse(await last.json()).turnId, turn.turnId);
    assert.equal((await fixture.client.fetch(`/api/turns/${crypto.randomUUID()}/trace`)).status, 404);
  });

  test("shows the exact request of a model call, also after later compactions", async () => {
    const turn = await fixture.turn('tool: ls {"path":"."}\nthen\nsay: asked', "requested");
    const requestOf = (step: number) => fixture.client.fetch(`/api/turns/${turn.turnId}/requests/${step}`);
    const read = async (step: number) => operations.turnsRequest.output.parse(await (await requestOf(step)).json());
    const check = async () => {
      const [first, second] = [await read(1), await read(3)];
      assert.deepEqual([first.note, first.exact, second.note, second.exact], [null, true, null, true]);
      const { system = "", tools = [], messages = [] } = first.request ?? {};
      assert.match(system, /./);
      assert.ok(tools.some(({ name }) => name === "read"));
      assert.match(JSON.stringify(messages), /tool: ls/);
      const parts = (second.request?.messages ?? []).flatMap((message) => message.parts.map(({ type }) => type));
      assert.deepEqual(parts.slice(-3), ["text", "tool_call", "tool_result"]);
    };
    await check();
    const path = `/api/sessions/${turn.sessionId}/compact`;
    const seen = new Set<object>(fixture.events);
    for (const word of ["once", "twice"]) {
      for (let round = 0; round < 6; round++)
        await fixture.turn(`say: ${word} ${round} ${"long ".repeat(400)}`, "requested");
      const compacted = await fixture.client.fetch(path, { method: "POST", body: "{}" });
      const { outcome } = operations.sessionsCompact.output.parse(await compacted.json());
      // `busy_later`: the turn's end was visible just before its session was free.
      assert.match(outcome, /^(?:compacted|busy_later)$/);
      seen.add(await fixture.happens((event) => event.type === "compacted" && !seen.has(event)));
    }
    await check();
    assert.equal((await requestOf(2)).status, 404);
  });

  test("writes only fields of the dictionary into the log", () => {
    const lines = fixture.cluster.lines.flatMap((line) => /^\S+ (\{.*\})$/.exec(line)?.[1] ?? []);
    assert.ok(lines.length > services.length);
    const documented = new Set(Object.keys({ ...lineFields, ...logFields }));
    const used = lines.flatMap((line) => Object.keys(JSON.parse(line) as object));
    assert.deepEqual(
      used.filter((name) => !documented.has(name)),
      [],
    );
  });

  test("reports the figures of the whole cluster once", async () => {
    await fixture.bus.request(store.outboxPut, {
      opId: crypto.randomUUID(),
      outgoing: {
        address: { channel: "telegram", account: "absent", conversation: "1" },
        text: "nobody sends this",
        expiresInMs: 60_000,
      },
    });
    const { port } = await readMetrics(fixture.cluster, "store");
    const pending = async () =>
      (await readMetrics(fixture.cluster, "store", port)).samples.find(
        ({ name, labels }) => name === "parley_outbox_rows" && labels["state"] === "pending",
      )?.value;
    await pollUntil(async () => (await pending()) === 1, "the pending text");
    await scrape();
    assert.ok((value("parley_outbox_oldest_seconds") ?? 0) > 0);
    assert.equal(value("parley_inbox_rows", { state: "dead" }), 0);
    assert.equal(value("parley_turns_open", { state: "running" }), 0);
    assert.ok((value("parley_schema_version") ?? 0) >= 33);
  });
});
