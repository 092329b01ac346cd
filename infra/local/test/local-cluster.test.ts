import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { readStateFile, readRunningState, sha256 } from "../src/home.ts";
import { ask } from "../src/main/ask.ts";
import { isAlive, nameOf, waitGone } from "../src/processes.ts";
import { sharedCacheDir } from "../src/servers/locate.ts";
import { startLocalCluster, type LocalClusterOptions } from "../src/local-cluster.ts";
import { failingMigration, fakePrograms } from "./fake-programs/programs.ts";
import { folder } from "./support/folder.ts";
import { redis as redisSays } from "./support/wire.ts";

const base = { serversDir: sharedCacheDir, programs: fakePrograms } satisfies Partial<LocalClusterOptions>;
const never = new AbortController().signal;

/** The fakes do not connect to these servers, so none has to run. */
const given = {
  postgres: {
    ownerUrl: "postgres://parley_owner:x@127.0.0.1:9/parley",
    storeUrl: "postgres://parley_store:x@127.0.0.1:9/parley",
  },
  redis: { url: "redis://127.0.0.1:9" },
  nats: { urlFor: (user: string) => `nats://${user}:x@127.0.0.1:9` },
};

test("starts with private servers, answers, and stops in order", async () => {
  using home = folder();
  const lines: string[] = [];
  const cluster = await startLocalCluster({
    ...base,
    home: home.path,
    replicas: { "channel-gateway": 2 },
    onServiceLine: (_, line) => lines.push(line),
  });
  assert.deepEqual(
    cluster.replicas().map(({ name, ready }) => [name, ready]),
    ["store-1", "agent-core-1", "tool-runner-1", "channel-gateway-1", "channel-gateway-2"].map((name) => [name, true]),
  );
  const [one = "", two = ""] = cluster.httpUrls;
  assert.equal(
    await ask(one, cluster.token, "hello", never),
    `channel-gateway-1 heard hello with Bearer ${cluster.token} as ${sha256(cluster.token)}`,
  );
  assert.match(await ask(two, cluster.token, "hello", never), /^channel-gateway-2 heard/);

  const state = readRunningState(home.path);
  assert.equal(state?.httpUrl, one);
  assert.equal(state?.replicas.length, 5);
  for (const file of ["state.json", "token", "lock"])
    assert.equal(statSync(join(home.path, file)).mode & 0o077, 0, file);
  assert.match(readFileSync(join(home.path, "logs", "store-1.log"), "utf8"), /store-1 is ready/);

  const started = [
    ...cluster.replicas().map((replica) => replica.process?.pid),
    cluster.servers.postgres?.current().pid,
  ];
  await cluster.stop();
  const drained = lines.filter((line) => line.endsWith("has drained")).map((line) => line.replace(/-\d .*/, ""));
  assert.deepEqual(drained, ["channel-gateway", "channel-gateway", "agent-core", "tool-runner", "store"]);
  // Its process had ended when this line was read.
  assert.match(readFileSync(join(home.path, "logs", "store-1.log"), "utf8"), /store-1 has drained/);
  assert.deepEqual(
    started.filter((pid) => pid !== undefined && nameOf(pid) !== null),
    [],
  );
  assert.equal(readStateFile(home.path), null);
  assert.equal(existsSync(join(home.path, "lock")), false);
});

test("restarts a killed replica on its port, and drains a replica before a requested restart", async () => {
  using home = folder();
  const drained = Promise.withResolvers<void>();
  await using cluster = await startLocalCluster({
    ...base,
    home: home.path,
    servers: given,
    onServiceLine: (_, line) => {
      if (line === "store-1 has drained") drained.resolve();
    },
  });
  const before = cluster.replicas().find(({ service }) => service === "channel-gateway");
  await cluster.kill("channel-gateway", 1, "SIGKILL");
  await cluster.whenReady("channel-gateway", 1);
  const after = cluster.replicas().find(({ service }) => service === "channel-gateway");
  assert.notEqual(after?.process?.pid, before?.process?.pid);
  assert.equal(after?.restarts, 1);
  assert.match(await ask(cluster.httpUrl, cluster.token, "again", never), /heard again/);

  const storePid = (): number | undefined => cluster.replicas().find(({ name }) => name === "store-1")?.process?.pid;
  const first = storePid();
  await cluster.restart("store", 1);
  assert.notEqual(storePid(), first);
  await drained.promise;
  assert.match(readFileSync(join(home.path, "logs", "store-1.log"), "utf8"), /store-1 has drained/);
  await assert.rejects(cluster.restart("store", 9), { code: "bad_option", message: "There is no replica store-9." });
});

test("restarts a killed server at the same address", async () => {
  using home = folder();
  const { postgres, nats } = given;
  await using cluster = await startLocalCluster({ ...base, home: home.path, servers: { postgres, nats } });
  assert.match(await redisSays(cluster.redisAdminUrl, "SET kept 7"), /\+OK/);
  await cluster.servers.redis?.restart("SIGTERM");
  assert.match(await redisSays(cluster.redisAdminUrl, "GET kept"), /\$1\r\n7/);
});

test("uses external servers and reports the consequences", async () => {
  using home = folder();
  const said: string[] = [];
  const environment = { DATABASE_URL: given.postgres.ownerUrl, REDIS_URL: "redis://h:1", NATS_URL: "nats://u:p@h:2" };
  await using cluster = await startLocalCluster({
    ...base,
    home: home.path,
    environment,
    print: (line) => said.push(line),
  });
  assert.deepEqual(
    [cluster.databaseUrl, cluster.redisUrl, cluster.natsUrls.store],
    [given.postgres.ownerUrl, "redis://h:1", "nats://u:p@h:2"],
  );
  assert.deepEqual([cluster.servers.postgres, cluster.servers.redis, cluster.servers.nats], [null, null, null]);
  assert.match(said.join("\n"), /DATABASE_OWNER_URL is not set: the store .* may change the schema/);
});

test("names the holder when a second cluster starts on the same home", async () => {
  using home = folder();
  await using _first = await startLocalCluster({ ...base, home: home.path, servers: given });
  await assert.rejects(startLocalCluster({ ...base, home: home.path, servers: given }), {
    code: "home_busy",
    message: new RegExp(`in use by another Parley \\(pid ${process.pid}, since 20.*, at http://127.0.0.1:\\d+\\)`),
  });
  assert.notEqual(readRunningState(home.path), null);
});

test("takes over the home of a killed supervisor and ends its leftover processes", async () => {
  using home = folder();
  const script = fileURLToPath(new URL("fake-programs/supervisor.ts", import.meta.url));
  const dead = spawn(process.execPath, ["--conditions=@parley/source", script, home.path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface({ input: dead.stdout }), "line")) as [string];
  const pids = JSON.parse(line) as number[];
  const orphans = pids.map(nameOf).filter((name) => name !== null);
  assert.equal(orphans.length, 7);
  dead.kill("SIGKILL");
  await once(dead, "exit");

  await using cluster = await startLocalCluster({ ...base, home: home.path });
  assert.equal(cluster.replicas().length, 4);
  for (const orphan of orphans) assert.ok(await waitGone(orphan, 5_000), `pid ${orphan.pid}`);
});

test("fails with the service's output when the configuration is wrong, and stops everything", async () => {
  using home = folder();
  const failed = startLocalCluster({
    ...base,
    home: home.path,
    servers: given,
    env: { "agent-core": { FAKE_SERVICE: "config" } },
  });
  await assert.rejects(failed, {
    code: "service_failed",
    message: /agent-core-1 has an invalid configuration[\s\S]*PARLEY_COLOUR: must be green/,
  });
  assert.equal(readStateFile(home.path), null);
  await using again = await startLocalCluster({ ...base, home: home.path, servers: given });
  assert.equal(
    again.replicas().every(({ ready }) => ready),
    true,
  );
});

test("fails after three attempts when a service cannot start", async () => {
  using home = folder();
  const failed = startLocalCluster({
    ...base,
    home: home.path,
    servers: given,
    env: { store: { FAKE_SERVICE: "crash" } },
  });
  await assert.rejects(failed, {
    code: "service_failed",
    message: /store-1 exited 3 times \(exit code 1\)[\s\S]*no luck today/,
  });
});

test("fails with the migration's output when the migration fails", async () => {
  using home = folder();
  const failed = startLocalCluster({ ...base, home: home.path, servers: given, programs: failingMigration });
  await assert.rejects(failed, { code: "service_failed", message: /migration 0007 does not apply/ });
});

test("leaves nothing behind when the start is aborted", async () => {
  using home = folder();
  const asked = new AbortController();
  const pids: number[] = [];
  const starting = startLocalCluster({
    ...base,
    home: home.path,
    servers: given,
    env: { store: { FAKE_SERVICE: "deaf" } },
    signal: asked.signal,
    onServiceLine: (replica) => {
      if (!replica.startsWith("channel-gateway")) return;
      for (const { process } of readStateFile(home.path)?.replicas ?? []) if (process !== null) pids.push(process.pid);
      asked.abort(new Error("enough"));
    },
  });
  await assert.rejects(starting, /enough/);
  assert.equal(pids.length, 4);
  assert.deepEqual(
    pids.map(nameOf).filter((name) => name !== null && isAlive(name)),
    [],
  );
});

test("names a taken port and the process that listens on it", async () => {
  using home = folder();
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as AddressInfo;
  await assert.rejects(startLocalCluster({ ...base, home: home.path, servers: given, httpPort: port }), {
    code: "port_taken",
    message:
      process.platform === "linux"
        ? new RegExp(`^Port ${port} is taken by .*\\(pid ${process.pid}\\)`)
        : new RegExp(`^Port ${port} is taken`),
  });
  taken.close();
});
