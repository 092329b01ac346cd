// infra/nats/nats.conf on a real server: a service logs in with the seed of its NKey, and a new key needs no restart of the service.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";

import { connectBus } from "@parley/bus";
import { readBaseConfig } from "@parley/chassis";
import { healthReports, newId, roles, store, type Role } from "@parley/contracts";
import { freePort, sharedCacheDir } from "@parley/local";
import { Cleanup, startTcpLink, temporaryFolder } from "@parley/testing";

import { findServer } from "../../infra/local/src/servers/locate.ts";
import { natsConf, publicKeyVariable } from "../../infra/nats/conf.ts";
import { createUserKey } from "../../infra/nats/nkeys.mjs";
import { read } from "./support/repository.ts";

const cleanup = new Cleanup();
/** Longer than three of the server's pings. */
const silentMs = 8_000;
const keys = new Map(roles.map((role) => [role, createUserKey()]));
let folder: string;
let port: number;
let reload: (conf: string) => Promise<void>;

const seedOf = (role: Role): string => keys.get(role)?.seed ?? "";

/** The configuration as it is in the repository, on other ports. */
const confOnPort = (): string => onPort(read("infra/nats/nats.conf"));

function onPort(conf: string): string {
  return conf.replace("port: 4222", `listen: 127.0.0.1:${port}`).replace("http: 127.0.0.1:8222\n", "");
}

before(async () => {
  folder = await temporaryFolder(cleanup);
  port = await freePort();
  const file = join(folder, "nats.conf");
  writeFileSync(file, confOnPort());
  const env = Object.fromEntries(roles.map((role) => [publicKeyVariable(role), keys.get(role)?.publicKey]));
  const program = await findServer("nats", sharedCacheDir, () => undefined);
  const server = spawn(program, ["--config", file], { env, stdio: ["ignore", "ignore", "pipe"] });
  const ended = once(server, "exit");
  cleanup.add(async () => {
    server.kill("SIGKILL");
    await ended;
  });
  const lines: string[] = [];
  const line = (pattern: RegExp) =>
    new Promise<void>((resolve, reject) => {
      const reader = createInterface(server.stderr).on("line", (text) => {
        lines.push(text);
        if (pattern.test(text)) {
          reader.close();
          resolve();
        }
      });
      void ended.then(() => reject(new Error(lines.join("\n"))));
    });
  await line(/Server is ready/);
  reload = async (conf) => {
    const reloaded = line(/Reloaded server configuration/);
    writeFileSync(file, conf);
    server.kill("SIGHUP");
    await reloaded;
  };
});
after(() => cleanup[Symbol.asyncDispose]());

/** Connects as a service does, with the variables of its environment. */
async function connectAs(t: TestContext, role: "store" | "agent-core", variables: Record<string, string>) {
  const config = readBaseConfig({ PARLEY_NATS_URL: `nats://127.0.0.1:${port}`, ...variables }, role);
  const reconnected = Promise.withResolvers<void>();
  const disconnected = Promise.withResolvers<void>();
  const bus = await connectBus({
    url: config.natsUrl,
    seed: config.natsSeed,
    namespace: "parley",
    role,
    name: `${role}-1`,
    log: {
      info: () => undefined,
      warn: () => disconnected.resolve(),
      error: () => undefined,
    },
    onReconnect: () => reconnected.resolve(),
  });
  // A connection of an earlier test must not serve a later one.
  t.after(() => bus.drain());
  return { bus, disconnected: disconnected.promise, reconnected: reconnected.promise };
}

test("admits each service with its own seed, and nobody without one or with another key", async (t) => {
  const { bus } = await connectAs(t, "store", { PARLEY_NATS_SEED: seedOf("store") });
  bus.serve(store.leadershipAcquire, async () => ({ epoch: 7 }));
  await bus.flush();
  const core = await connectAs(t, "agent-core", { PARLEY_NATS_SEED: seedOf("agent-core") });
  assert.deepEqual(await core.bus.request(store.leadershipAcquire, { opId: newId(), holder: "h" }), { epoch: 7 });
  // The permissions belong to the key: agent-core's key may not serve the store's subjects.
  await assert.rejects(async () => {
    core.bus.serve(healthReports.store, async () => assert.fail("served"));
    await core.bus.verifyPermissions();
  }, /NATS denies agent-core the subscription/);
  await assert.rejects(connectAs(t, "store", {}), /Authorization Violation/);
  await assert.rejects(connectAs(t, "store", { PARLEY_NATS_SEED: createUserKey().seed }), /Authorization Violation/);
});

test("uses a new key after its file and the server's configuration changed, without a restart", async (t) => {
  const file = join(folder, "seed");
  writeFileSync(file, `${seedOf("store")}\n`);
  const { bus, disconnected, reconnected } = await connectAs(t, "store", { PARLEY_NATS_SEED_FILE: file });
  bus.serve(store.leadershipAcquire, async () => ({ epoch: 8 }));
  await bus.flush();
  const core = await connectAs(t, "agent-core", { PARLEY_NATS_SEED: seedOf("agent-core") });

  const next = createUserKey();
  // The server changes first: until the file has changed, it refuses the service.
  await reload(confOnPort().replace(`$${publicKeyVariable("store")}`, next.publicKey));
  await disconnected;
  writeFileSync(file, next.seed);
  await reconnected;
  assert.deepEqual(await core.bus.request(store.leadershipAcquire, { opId: newId(), holder: "h" }), { epoch: 8 });
});

test("admits services of an older version by password during an upgrade, with the same permissions", async (t) => {
  // The environment of the server has no passwords: they are in this configuration instead.
  const both = onPort(natsConf("parley", { passwords: true })).replace(/\$NATS_(\w+)_PASSWORD/g, "pw$1");
  await reload(both);
  const current = await connectAs(t, "store", { PARLEY_NATS_SEED: seedOf("store") });
  current.bus.serve(store.leadershipAcquire, async () => ({ epoch: 9 }));
  await current.bus.flush();
  const older = await connectAs(t, "agent-core", {
    PARLEY_NATS_URL: `nats://agent-core:pwAGENT_CORE@127.0.0.1:${port}`,
  });
  assert.deepEqual(await older.bus.request(store.leadershipAcquire, { opId: newId(), holder: "h" }), { epoch: 9 });
  await assert.rejects(async () => {
    older.bus.serve(healthReports.store, async () => assert.fail("served"));
    await older.bus.verifyPermissions();
  }, /NATS denies agent-core the subscription/);
  // The end of the upgrade.
  const gone = older.disconnected;
  await reload(confOnPort());
  await gone;
});

test("drops a silent replica, so that another one answers its requests", async (t) => {
  await reload(confOnPort());
  const link = await startTcpLink(cleanup, port);
  const url = { PARLEY_NATS_URL: `nats://127.0.0.1:${link.port}` };
  const silent = await connectAs(t, "store", { PARLEY_NATS_SEED: seedOf("store"), ...url });
  const other = await connectAs(t, "store", { PARLEY_NATS_SEED: seedOf("store") });
  for (const [{ bus }, epoch] of [[silent, 1] as const, [other, 2] as const]) {
    bus.serve(store.leadershipAcquire, async () => ({ epoch }));
    await bus.flush();
  }
  const core = await connectAs(t, "agent-core", { PARLEY_NATS_SEED: seedOf("agent-core") });
  const ask = () =>
    core.bus.request(store.leadershipAcquire, { opId: newId(), holder: "h" }, { timeoutMs: 1_000, attemptMs: 1_000 });
  link.cut();
  const cutAtMs = performance.now();
  // A request to the silent replica times out; 20 answers in a row are no chance. The server has its time in between, because version 2.9
  // counts what it sends to a client as activity of that client.
  for (let inARow = 0; inARow < 20;) {
    assert.ok(performance.now() - cutAtMs < 60_000, "the server still sends requests to the silent replica");
    inARow = await ask().then(
      () => inARow + 1,
      async () => delay(silentMs, 0),
    );
  }
  // It notices too, and is no longer ready.
  await silent.disconnected;
  await link.restore();
  await silent.reconnected;
});

test("refuses a seed that is none, at the start", () => {
  assert.throws(
    () => readBaseConfig({ PARLEY_NATS_SEED: "not-a-seed" }, "store"),
    /PARLEY_NATS_SEED: must be the seed/,
  );
});
