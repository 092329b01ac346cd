// How a replica stops serving: no request that the server has delivered to it stays without a reply.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { connectBus } from "@parley/bus";
import { controlPing, store, WireError } from "@parley/contracts";
import { startNats, type NatsServer } from "@parley/local";
import { Cleanup, openTestBus, startTcpLink } from "@parley/testing";
import { acquire, startBusPair } from "./support/pair.ts";

const cleanup = new Cleanup();
let nats: NatsServer;
let core: Bus;
let served: Bus;

before(async () => {
  ({ nats, core, served } = await startBusPair(cleanup));
});
after(() => cleanup[Symbol.asyncDispose]());

test("a request that arrives after its replica has stopped serving is refused, and sent again to another one", async () => {
  const other = await openTestBus(nats, "store", cleanup);
  const answered = Promise.withResolvers<void>();
  const serving = served.serve(store.leadershipAcquire, async () => {
    // The server has delivered the second request with this one.
    serving.close();
    other.serve(store.leadershipAcquire, async () => ({ epoch: 2 }));
    await answered.promise;
    return { epoch: 1 };
  });
  await served.flush();
  const long = { timeoutMs: 60_000, attemptMs: 60_000 };
  const first = core.request(store.leadershipAcquire, acquire, long);
  assert.deepEqual(await core.request(store.leadershipAcquire, acquire, long), { epoch: 2 });
  answered.resolve();
  assert.deepEqual(await first, { epoch: 1 });
  await other.drain();
});

test("drain answers or refuses each request that the server delivers meanwhile", async () => {
  const leaving = await openTestBus(nats, "store", cleanup);
  const begun = Promise.withResolvers<void>();
  leaving.serve(store.leadershipAcquire, async () => {
    begun.resolve();
    // Longer than it takes to close a connection.
    for (let trip = 0; trip < 10; trip += 1) await core.flush();
    return { epoch: 1 };
  });
  await leaving.flush();
  const outcomes: Promise<string>[] = [];
  const ask = () => {
    const answer = core.request(store.leadershipAcquire, acquire, { timeoutMs: 20_000, attemptMs: 20_000, once: true });
    outcomes.push(
      answer.then(
        () => "answered",
        (error: unknown) => (WireError.is(error) ? error.code : String(error)),
      ),
    );
  };
  ask();
  await begun.promise;
  const open = { is: true };
  const drained = leaving.drain().finally(() => (open.is = false));
  while (open.is) {
    ask();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await drained;
  const seen = new Set(await Promise.all(outcomes));
  assert.deepEqual([...seen].toSorted(), ["UNAVAILABLE", "answered"]);
});

test("drain refuses a request that arrives while it waits for the server", async () => {
  const link = await startTcpLink(cleanup, Number(new URL(nats.url).port));
  const url = nats.urlFor("store").replace(/:\d+$/, `:${link.port}`);
  const log = { info() {}, warn() {}, error() {} };
  const leaving = await connectBus({ url, namespace: "parley", role: "store", name: "leaving", log });
  leaving.serve(store.leadershipAcquire, async () => ({ epoch: 1 }));
  await leaving.flush();
  link.cut();
  const asked = core.request(store.leadershipAcquire, acquire, { timeoutMs: 20_000, attemptMs: 20_000, once: true });
  // The server has sent the request to the replica.
  await core.flush();
  const drained = leaving.drain();
  await link.restore();
  await assert.rejects(asked, /this replica is stopping/);
  await drained;
});

test("drain ends immediately when no server is available", { timeout: 10_000 }, async () => {
  const dataDir = nats.dataDir.replace(/nats$/, "nats-away");
  const server = await startNats({ dataDir });
  const gone = Promise.withResolvers<void>();
  const log = { info() {}, warn: () => gone.resolve(), error() {} };
  const bus = await connectBus({ url: server.url, namespace: "n", role: "agent-core", name: "alone", log });
  bus.serve(controlPing, async () => ({ epoch: 1, holder: "x" }));
  await server.kill("SIGKILL");
  await gone.promise;
  await bus.drain();
  assert.equal(await bus.closed, undefined);
});
