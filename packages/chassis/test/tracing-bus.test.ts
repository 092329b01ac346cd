// The trace context on a real NATS server: which messages carry it, and which requests have spans.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { activeTrace, inSpan, readBaseConfig } from "@parley/chassis";
import { connectBus, type Bus } from "@parley/bus";
import { inboxReady, newId, sessionEvent, store, toolCatalog } from "@parley/contracts";
import { Cleanup, openTestBus, startOtlpCollector, startTestNats, type OtlpCollector } from "@parley/testing";
import { startTracing } from "../src/tracing.ts";

const cleanup = new Cleanup();
const acquire = { opId: newId(), holder: "h" };
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
let collector: OtlpCollector;
let core: Bus;
let detailed: Bus;
let storeBus: Bus;
let runner: Bus;
let gateway: Bus;

before(async () => {
  collector = await startOtlpCollector();
  cleanup.add(() => collector.close());
  // The exporter reads its address from the environment, as it does in a service.
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" };
  process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url;
  const config = readBaseConfig({ ...env, OTEL_BSP_SCHEDULE_DELAY: "20", PARLEY_LOG_LEVEL: "silent" }, "agent-core");
  const tracing = await startTracing(config);
  cleanup.add(() => tracing.flush(2_000));
  const nats = await startTestNats(cleanup);
  [core, storeBus, runner, gateway] = await Promise.all([
    openTestBus(nats, "agent-core", cleanup),
    openTestBus(nats, "store", cleanup),
    openTestBus(nats, "tool-runner", cleanup),
    openTestBus(nats, "channel-gateway", cleanup),
  ]);
  const options = {
    url: nats.urlFor("agent-core"),
    namespace: "parley",
    role: "agent-core",
    name: "detailed",
  } as const;
  detailed = await connectBus({ ...options, log: silent, traceStore: true });
  cleanup.add(() => detailed.drain());
});
after(() => cleanup[Symbol.asyncDispose]());

test("runs a handler under the sender's span, without its own span for the store", async () => {
  const heard: (string | null)[] = [];
  const serving = storeBus.serve(store.leadershipAcquire, async () => {
    heard.push(activeTrace());
    return { epoch: 1 };
  });
  await storeBus.flush();
  const asked = await inSpan("asking", {}, async () => {
    await core.request(store.leadershipAcquire, acquire);
    return activeTrace();
  });
  await core.request(store.leadershipAcquire, acquire);
  serving.close();
  assert.deepEqual(heard, [asked, null]);
});

test("creates spans on both sides of a request only inside of a trace", async () => {
  const serving = runner.serve(toolCatalog, async () => ({ tools: [], isolation: "none", contained: false }));
  await runner.flush();
  await core.request(toolCatalog, {});
  await inSpan("looking", {}, () => core.request(toolCatalog, {}));
  serving.close();
  const processed = await collector.span(({ name }) => name === "process tool.catalog");
  const sent = await collector.span(({ spanId }) => spanId === processed.parentSpanId);
  const looking = await collector.span(({ spanId }) => spanId === sent.parentSpanId);
  assert.deepEqual([sent.name, looking.name], ["send tool.catalog", "looking"]);
  assert.equal(sent.attributes["messaging.destination.name"], "parley.tool.catalog");
  assert.equal(collector.spans.filter(({ name }) => name === "send tool.catalog").length, 1);
});

test("creates spans for requests to the store when enabled", async () => {
  const serving = storeBus.serve(store.leadershipAcquire, async () => ({ epoch: 1 }));
  await storeBus.flush();
  await inSpan("detail", {}, () => detailed.request(store.leadershipAcquire, acquire));
  serving.close();
  const detail = await collector.span(({ name }) => name === "detail");
  const sent = await collector.span(({ name }) => name === "send store.leadership.acquire");
  assert.equal(sent.parentSpanId, detail.spanId);
});

test("sends the span with a hint and not with a live event", async () => {
  const hinted = Promise.withResolvers<string | null>();
  const told = Promise.withResolvers<string | null>();
  core.subscribe(inboxReady, {}, () => hinted.resolve(activeTrace()));
  gateway.subscribe(sessionEvent, {}, () => told.resolve(activeTrace()));
  await Promise.all([core.flush(), gateway.flush()]);
  const given = await inSpan("hinting", {}, async () => {
    storeBus.publish(inboxReady, { sessionId: "s", priority: 1 });
    core.publish(sessionEvent, { type: "turn.started", turnId: "t", inboxIds: [], attempt: 1 }, { session: "s" });
    return activeTrace();
  });
  assert.equal(await hinted.promise, given);
  assert.equal(await told.promise, null);
});
