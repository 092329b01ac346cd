// The bus on a real NATS server, with the users and permissions of a deployment.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { connectBus } from "@parley/bus";
import { controlPing, healthReports, inboxReady, store, toolAlive, WireError } from "@parley/contracts";
import { startNats, type NatsServer } from "@parley/local";
import { Cleanup, openTestBus, pollUntil, startTcpLink } from "@parley/testing";
import { acquire, startBusPair } from "./support/pair.ts";

const cleanup = new Cleanup();
let nats: NatsServer;
let core: Bus;
let served: Bus;

before(async () => {
  ({ nats, core, served } = await startBusPair(cleanup));
});
after(() => cleanup[Symbol.asyncDispose]());

test("request waits for its server and gets a reply as soon as the server is available", async () => {
  const answer = core.request(store.leadershipAcquire, acquire, { timeoutMs: 5_000 });
  const serving = served.serve(store.leadershipAcquire, async ({ holder }) => ({ epoch: holder.length }));
  assert.deepEqual(await answer, { epoch: 1 });
  serving.close();
});

test("request fails with UNAVAILABLE at its deadline when no server is running", async () => {
  await assert.rejects(core.request(store.leadershipAcquire, acquire, { timeoutMs: 500 }), (error) =>
    WireError.is(error, "UNAVAILABLE"),
  );
});

test("request with `once` fails immediately when no replica serves the subject", async () => {
  const never = new Promise<string>((resolve) => setTimeout(resolve, 10_000, "still asking").unref());
  const answer = core.request(store.leadershipAcquire, acquire, { timeoutMs: 60_000, once: true });
  const unavailable = answer.catch((error: unknown) => (WireError.is(error) ? error.code : error));
  assert.equal(await Promise.race([unavailable, never]), "UNAVAILABLE");
});

test("request is sent again when its reply is lost", async () => {
  let asked = 0;
  const first = Promise.withResolvers<void>();
  const serving = served.serve(store.leadershipAcquire, async () => {
    asked += 1;
    if (asked === 1) await first.promise;
    return { epoch: asked };
  });
  const { epoch } = await core.request(store.leadershipAcquire, acquire, { timeoutMs: 5_000, attemptMs: 100 });
  // On a busy machine the reply to the second attempt may be late as well.
  assert.ok(epoch >= 2);
  first.resolve();
  serving.close();
});

test("request is sent again soon when earlier ones were answered fast", async (t) => {
  let lost = 0;
  let isLosing = false;
  const end = Promise.withResolvers<void>();
  const serving = served.serve(store.leadershipAcquire, async ({ holder }) => {
    if (isLosing && ++lost === 1) await end.promise;
    return { epoch: holder.length };
  });
  t.after(() => {
    serving.close();
    end.resolve();
  });
  for (let fast = 0; fast < 20; fast += 1) await core.request(store.leadershipAcquire, acquire);
  isLosing = true;
  // Less than the longest wait for a reply.
  assert.deepEqual(await core.request(store.leadershipAcquire, acquire, { timeoutMs: 2_000 }), { epoch: 1 });
  assert.ok(lost > 1);
});

test("a request that is not idempotent is not sent again without a reply", async (t) => {
  const gateway = await openTestBus(nats, "channel-gateway", cleanup);
  const end = Promise.withResolvers<void>();
  let arrived = 0;
  let isStuck = false;
  const serving = served.serve(store.fileClaim, async () => {
    arrived += 1;
    if (isStuck) await end.promise;
    return { messages: [] };
  });
  t.after(() => {
    serving.close();
    end.resolve();
  });
  const claim = { accounts: [], ttlMs: 1_000, limit: 1 };
  for (let fast = 0; fast < 20; fast += 1) await gateway.request(store.fileClaim, claim);
  isStuck = true;
  // An idempotent request would be sent again after 200 ms.
  const stuck = gateway.request(store.fileClaim, claim, { timeoutMs: 700 });
  await assert.rejects(stuck, (error) => WireError.is(error, "TIMEOUT"));
  assert.equal(arrived, 21);
});

test("the reply to an attempt that was given up still counts", async (t) => {
  const replies: ((answer: { epoch: number }) => void)[] = [];
  const serving = served.serve(store.leadershipAcquire, () => {
    const { promise, resolve } = Promise.withResolvers<{ epoch: number }>();
    replies.push(resolve);
    // The second attempt is never answered.
    if (replies.length === 2) replies[0]?.({ epoch: 7 });
    return promise;
  });
  t.after(() => {
    serving.close();
    for (const reply of replies) reply({ epoch: 8 });
  });
  const options = { timeoutMs: 60_000, attemptMs: 100 };
  assert.deepEqual(await core.request(store.leadershipAcquire, acquire, options), { epoch: 7 });
});

test("a server refuses a payload that does not match its contract and continues", async () => {
  const serving = served.serve(store.leadershipAcquire, async () => ({ epoch: 7 }));
  await assert.rejects(
    core.request(store.leadershipAcquire, { ...acquire, opId: "not a uuid" }),
    (error) => WireError.is(error, "INVALID_INPUT") && /opId/.test(error.message),
  );
  assert.deepEqual(await core.request(store.leadershipAcquire, acquire), { epoch: 7 });
  serving.close();
});

test("an error keeps its code over the bus, and a bug becomes INTERNAL without details", async () => {
  let failure: Error = new WireError("STALE_EPOCH", "over");
  const serving = served.serve(store.leadershipAcquire, () => Promise.reject(failure));
  await assert.rejects(core.request(store.leadershipAcquire, acquire), (error) => WireError.is(error, "STALE_EPOCH"));
  failure = new Error("the password is x");
  await assert.rejects(
    core.request(store.leadershipAcquire, acquire),
    (error) => WireError.is(error, "INTERNAL") && !error.message.includes("password"),
  );
  serving.close();
});

test("a payload above the limit is refused by its sender", async () => {
  const holder = "x".repeat(600_000);
  await assert.rejects(core.request(store.leadershipAcquire, { ...acquire, holder }), (error) =>
    WireError.is(error, "TOO_LARGE"),
  );
});

test("request can be cancelled", async () => {
  const held = Promise.withResolvers<{ epoch: number }>();
  const serving = served.serve(store.leadershipAcquire, () => held.promise);
  const abort = new AbortController();
  const asking = core.request(store.leadershipAcquire, acquire, { signal: abort.signal });
  abort.abort();
  await assert.rejects(asking, (error) => WireError.is(error, "CANCELLED"));
  held.resolve({ epoch: 1 });
  serving.close();
});

test("one replica of a group replies, and all replicas reply where every replica serves", async () => {
  const other = await openTestBus(nats, "store", cleanup);
  let answers = 0;
  const report = {
    service: "store" as const,
    replica: "s",
    pid: 1,
    role: "active" as const,
    epoch: null,
    ready: true,
    uptimeSeconds: 1,
    rssMib: 1,
    version: "0",
    details: {},
  };
  for (const bus of [served, other]) {
    bus.serve(healthReports.store, async () => report);
    bus.serve(store.leadershipAcquire, async () => ({ epoch: ++answers }));
    await bus.flush();
  }
  const operator = await openTestBus(nats, "operator", cleanup);
  await pollUntil(async () => (await operator.gather(healthReports.store, {}, 300)).length === 2, "both reports");
  await core.request(store.leadershipAcquire, acquire);
  assert.equal(answers, 1);
});

test("an event reaches the subscribers of its placeholder, and an invalid one is dropped", async () => {
  const refused: string[] = [];
  const runner = await openTestBus(nats, "tool-runner", cleanup);
  const listener = await connectBus({
    url: nats.urlFor("agent-core"),
    namespace: "parley",
    role: "agent-core",
    name: "listener",
    log: { info() {}, warn() {}, error() {} },
    onBadPayload: (subject) => refused.push(subject),
  });
  cleanup.add(() => listener.drain());
  const heard = Promise.withResolvers<number>();
  listener.subscribe(toolAlive, { call: "mine" }, ({ n }) => heard.resolve(n));
  await listener.flush();
  runner.publish(toolAlive, { turnId: "t", n: Number.NaN, runner: "r" }, { call: "mine" });
  runner.publish(toolAlive, { turnId: "t", n: 1, runner: "r" }, { call: "other" });
  runner.publish(toolAlive, { turnId: "t", n: 2, runner: "r" }, { call: "mine" });
  assert.equal(await heard.promise, 2);
  assert.deepEqual(refused, ["tool.alive.{call}"]);
});

test("a role cannot send requests that its permissions do not allow", async () => {
  const serving = served.serve(store.leadershipAcquire, async () => ({ epoch: 1 }));
  const runner = await openTestBus(nats, "tool-runner", cleanup);
  await assert.rejects(
    runner.request(store.leadershipAcquire, acquire, { timeoutMs: 300 }),
    /leadership\.acquire: NATS denies this request: .* install this version's nats\.conf/,
  );
  serving.close();
});

test("a denied request names the denial when a later attempt gets no reply", async () => {
  const link = await startTcpLink(cleanup, Number(new URL(nats.url).port));
  const url = nats.urlFor("tool-runner").replace(/:\d+$/, `:${link.port}`);
  const log = { info() {}, warn() {}, error: () => link.cut() };
  const bus = await connectBus({ url, namespace: "parley", role: "tool-runner", name: "x", log });
  cleanup.add(async () => {
    await link.restore();
    await bus.drain();
  });
  await assert.rejects(bus.request(store.leadershipAcquire, acquire, { timeoutMs: 1_000 }), /NATS denies this request/);
});

test("logs a denied request once for each connection", async () => {
  const errors: string[] = [];
  const log = { info() {}, warn() {}, error: (fields: { err?: Error }) => void errors.push(fields.err?.message ?? "") };
  const bus = await connectBus({
    url: nats.urlFor("tool-runner"),
    namespace: "parley",
    role: "tool-runner",
    name: "x",
    log,
  });
  cleanup.add(() => bus.drain());
  for (let request = 0; request < 3; request += 1)
    await assert.rejects(bus.request(store.leadershipAcquire, acquire, { once: true }), /NATS denies this request/);
  assert.deepEqual(errors, ['Permissions Violation for Publish to "parley.store.leadership.acquire"']);
});

test("permitted names the subject when the server denies a subscription", async () => {
  const runner = await openTestBus(nats, "tool-runner", cleanup);
  await runner.verifyPermissions();
  runner.subscribe(toolAlive, {}, () => {});
  runner.serve(store.leadershipAcquire, async () => ({ epoch: 1 }));
  await assert.rejects(
    runner.verifyPermissions(),
    /tool-runner the subscription to parley\.tool\.alive\.\* and 1 more/,
  );
});

test("permitted waits for the next connection when the current one breaks", async () => {
  const link = await startTcpLink(cleanup, Number(new URL(nats.url).port));
  const reconnected = Promise.withResolvers<void>();
  const bus = await connectBus({
    url: nats.urlFor("store").replace(/:\d+$/, `:${link.port}`),
    namespace: "parley",
    role: "store",
    name: "broken",
    log: { info() {}, warn() {}, error() {} },
    onReconnect: () => reconnected.resolve(),
  });
  cleanup.add(() => bus.drain());
  assert.equal(bus.problem, null);
  link.cut();
  const permitted = bus.verifyPermissions();
  await link.refuse();
  await pollUntil(async () => !bus.connected, "a lost connection");
  assert.equal(bus.problem, "waiting for the bus: the connection to NATS is lost");
  await link.restore();
  await permitted;
  await reconnected.promise;
});

test("requests survive a restart of the server", async () => {
  const quiet = { info() {}, warn() {}, error() {} };
  const dataDir = nats.dataDir.replace(/nats$/, "nats-restart");
  let server = await startNats({ dataDir });
  const options = { url: server.url, namespace: "n", log: quiet };
  const asking = await connectBus({ ...options, role: "agent-core", name: "asking" });
  const answering = await connectBus({ ...options, role: "agent-core", name: "answering" });
  answering.serve(controlPing, async () => ({ epoch: 3, holder: "x" }));
  await server.kill("SIGKILL");
  const answer = asking.request(controlPing, {}, { timeoutMs: 10_000, attemptMs: 500 });
  server = await startNats({ dataDir, port: server.port });
  assert.equal((await answer).epoch, 3);
  await Promise.all([asking.drain(), answering.drain()]);
  await assert.rejects(asking.request(controlPing, {}, { timeoutMs: 60_000 }), (error) =>
    WireError.is(error, "UNAVAILABLE"),
  );
  await server.stop();
});

test("hints can be dropped on purpose, and events cannot", async () => {
  const losing = await connectBus({
    url: nats.urlFor("store"),
    namespace: "parley",
    role: "store",
    name: "losing",
    log: { info() {}, warn() {}, error() {} },
    dropHints: 1,
  });
  cleanup.add(() => losing.drain());
  let heard = 0;
  core.subscribe(inboxReady, {}, () => (heard += 1));
  await core.flush();
  losing.publish(inboxReady, { sessionId: "s", priority: 1 });
  served.publish(inboxReady, { sessionId: "s", priority: 1 });
  // The server has delivered everything it received before it replies to a later flush.
  await Promise.all([losing.flush(), served.flush()]);
  await core.flush();
  assert.equal(heard, 1);
});
