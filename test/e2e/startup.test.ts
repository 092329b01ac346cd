// What a service reports before it has started: probes, reasons and log lines of real processes.
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo, type Server } from "node:net";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { version } from "@parley/chassis";
import { controlPing, services, type ServiceName } from "@parley/contracts";
import { startNats, startPostgres, startRedis, type NatsServer } from "@parley/local";
import {
  Cleanup,
  openTestBus,
  pollUntil,
  startStoreStack,
  startTcpLink,
  startTestNats,
  startTestPostgres,
  startTestRedis,
  temporaryFolder,
} from "@parley/testing";
import { knownMigrations, migrate } from "../../services/store/src/migrate.ts";
import { redisCommand, redisReply } from "../chaos/faults.ts";
import { startService } from "./support/service-process.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

const token = "0123456789abcdef";
const needed: Record<ServiceName, Record<string, string>> = {
  "channel-gateway": { PARLEY_TOKEN: token, PARLEY_HTTP_PORT: "0" },
  "agent-core": { REDIS_URL: "redis://127.0.0.1:9", PARLEY_MODEL: "rehearsal" },
  "tool-runner": { PARLEY_EXEC_ISOLATION: "none" },
  store: { DATABASE_URL: "postgres://store:x@127.0.0.1:9/parley" },
};

/** Accepts connections and ends them; resolves `seen(n)` at the nth connection. */
async function refusingServer(): Promise<{ port: number; server: Server; seen(count: number): Promise<void> }> {
  let count = 0;
  const waiting: { at: number; resolve: () => void }[] = [];
  const server = createServer((socket) => {
    count += 1;
    socket.on("error", () => undefined).destroy();
    for (const each of waiting) if (count >= each.at) each.resolve();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup.add(async () => void server.close());
  return {
    server,
    port: (server.address() as AddressInfo).port,
    seen: (at) => new Promise((resolve) => (count >= at ? resolve() : waiting.push({ at, resolve }))),
  };
}

/** A leader of another process: it holds the lock and answers pings. */
async function actAsLeader(nats: NatsServer, redisUrl: string): Promise<void> {
  const holder = "agent-core-9/1";
  await redisCommand(redisUrl, "SET", "parley:leader", holder);
  (await openTestBus(nats, "agent-core", cleanup)).serve(controlPing, async () => ({ epoch: 1, holder }));
}

for (const service of ["channel-gateway", "agent-core", "tool-runner", "store"] as const) {
  // design: 001.26c
  test(`answers probes and logs one reason when the bus is unavailable to ${service}`, async () => {
    const bus = await refusingServer();
    const folder = await temporaryFolder(cleanup);
    const running = await startService(cleanup, service, {
      env: {
        ...needed[service],
        PARLEY_HOME: folder,
        PARLEY_NATS_URL: `nats://x:secret-of-the-bus@127.0.0.1:${bus.port}`,
      },
    });
    const startup = await running.until("/startupz", ({ body }) => body.includes("waiting for the bus"));
    assert.equal(startup.status, 503);
    assert.match(startup.body, new RegExp(`127\\.0\\.0\\.1:${bus.port}`));
    assert.equal((await running.probe("/livez")).status, 200);
    assert.equal((await running.probe("/readyz")).status, 503);
    assert.match((await running.probe("/metrics")).body, /^parley_start_waiting\{[^}]*\} 1$/m);
    await bus.seen(8);
    const said = running.lines.filter((line) => line.includes("start delayed"));
    assert.equal(said.length, 1, said.join("\n"));
    assert.ok(!`${startup.body}${said.join("")}`.includes("secret-of-the-bus"));
    assert.equal(running.child.exitCode, null);
  });
}

describe("a bus that becomes available later", () => {
  const prepare: Record<ServiceName, () => Promise<Record<string, string>>> = {
    "channel-gateway": async () => ({}),
    "tool-runner": async () => ({ PARLEY_HOME: await temporaryFolder(cleanup) }),
    "agent-core": async () => ({ REDIS_URL: (await startTestRedis(cleanup)).url }),
    store: async () => ({ DATABASE_URL: (await startTestPostgres(cleanup)).storeUrl }),
  };
  for (const service of services) {
    test(`lets ${service} start, and a lost connection makes it unready until it is back`, async () => {
      const bus = await refusingServer();
      const running = await startService(cleanup, service, {
        env: { ...needed[service], ...(await prepare[service]()), PARLEY_NATS_URL: `nats://127.0.0.1:${bus.port}` },
      });
      await running.line(/start delayed: waiting for the bus/);
      await new Promise((resolve) => bus.server.close(resolve));
      const dataDir = join(await temporaryFolder(cleanup), "nats");
      let nats = await startNats({ dataDir, port: bus.port });
      cleanup.add(() => nats.stop());
      await running.until("/startupz", ({ status }) => status === 200);
      // agent-core has neither a leader nor a store here, so it starts and is not ready.
      const withBus = service === "agent-core" ? 503 : 200;
      await running.until("/readyz", ({ status, body }) => status === withBus && !body.includes("the bus"));
      await nats.stop();
      const lost = await running.until("/readyz", ({ body }) => body.includes("the bus"));
      assert.deepEqual(lost, { status: 503, body: "waiting for the bus: the connection to NATS is lost\n" });
      assert.equal((await running.probe("/livez")).status, 200);
      nats = await startNats({ dataDir, port: bus.port });
      await running.until("/readyz", ({ status, body }) => status === withBus && !body.includes("the bus"));
      assert.equal(running.child.exitCode, null);
    });
  }
});

test("keeps agent-core alive and not ready while no store answers, and lets it lead when one does", async () => {
  const [nats, redis] = await Promise.all([startTestNats(cleanup), startTestRedis(cleanup)]);
  const running = await startService(cleanup, "agent-core", {
    env: { ...needed["agent-core"], PARLEY_NATS_URL: nats.urlFor("agent-core"), REDIS_URL: redis.url },
  });
  const unready = await running.until("/readyz", ({ body }) => body.includes("the store"));
  assert.deepEqual(unready, {
    status: 503,
    body:
      "waiting for the store: no replica can lead without it " +
      "(parley.store.leadership.acquire: no replica serves it)\n",
  });
  const attempts = async () => {
    const statistics = await redisReply(redis.url, "INFO", "commandstats");
    return Number(/cmdstat_set:calls=(\d+)/.exec(statistics)?.[1] ?? 0);
  };
  const before = await attempts();
  await pollUntil(async () => (await attempts()) >= before + 2, "two more attempts to lead");
  assert.equal((await running.probe("/livez")).status, 200);
  assert.equal((await running.probe("/startupz")).status, 200);
  assert.match((await running.probe("/metrics")).body, /^parley_start_waiting\{[^}]*\} 1$/m);
  assert.equal(running.lines.filter((line) => line.includes("work delayed: waiting for the store")).length, 1);

  await startStoreStack(cleanup, { nats });
  await running.until("/readyz", ({ status }) => status === 200);
  assert.match((await running.probe("/metrics")).body, /^parley_leader\{[^}]*\} 1$/m);
  await running.line(/work continued: found the store/);
});

test("starts store and agent-core when PostgreSQL and Redis become reachable later", async () => {
  const [nats, redis, postgres] = await Promise.all([
    startTestNats(cleanup),
    startTestRedis(cleanup),
    startTestPostgres(cleanup),
  ]);
  const portOf = (url: string) => Number(new URL(url).port);
  const away = { store: postgres.storeUrl, "agent-core": redis.url };
  const named = { store: "the database", "agent-core": "Redis" };
  const started = await Promise.all(
    (["store", "agent-core"] as const).map(async (service) => {
      const link = await startTcpLink(cleanup, portOf(away[service]));
      await link.refuse();
      const url = away[service].replace(`:${portOf(away[service])}`, `:${link.port}`);
      const env = { ...needed[service], PARLEY_NATS_URL: nats.urlFor(service) };
      const running = await startService(cleanup, service, {
        env: { ...env, ...(service === "store" ? { DATABASE_URL: url } : { REDIS_URL: url }) },
      });
      const { status, body } = await running.until("/readyz", (probe) => probe.body.includes(named[service]));
      assert.equal(status, 503);
      assert.match(body, new RegExp(`^waiting for ${named[service]}: .*ECONNREFUSED 127\\.0\\.0\\.1:${link.port}`));
      await running.line(new RegExp(`start delayed: waiting for ${named[service]}`));
      assert.equal((await running.probe("/livez")).status, 200);
      return { running, link };
    }),
  );
  for (const { link } of started) await link.restore();
  for (const { running } of started) await running.until("/readyz", ({ status }) => status === 200);
});

test("starts agent-core with secrets that are only in files", async () => {
  const [nats, redis, folder] = await Promise.all([
    startTestNats(cleanup),
    startRedis({ dataDir: join(await temporaryFolder(cleanup), "redis") }),
    temporaryFolder(cleanup),
  ]);
  cleanup.add(() => redis.stop());
  const secrets = { PARLEY_NATS_URL: nats.urlFor("agent-core"), REDIS_URL: redis.url };
  for (const [name, value] of Object.entries(secrets)) await writeFile(join(folder, name), value, { mode: 0o440 });
  const running = await startService(cleanup, "agent-core", {
    env: { PARLEY_MODEL: "rehearsal", PARLEY_SECRETS_DIR: folder },
  });
  await running.until("/startupz", ({ status }) => status === 200);
  const environment = await readFile(`/proc/${running.child.pid}/environ`, "utf8");
  assert.match(environment, /PARLEY_SECRETS_DIR=/);
  for (const value of Object.values(secrets)) assert.ok(!environment.includes(value));
});

test("starts agent-core only with Redis's password, and keeps it ready when Redis fails", async () => {
  const [nats, redis] = await Promise.all([
    startTestNats(cleanup),
    startRedis({ dataDir: join(await temporaryFolder(cleanup), "redis") }),
  ]);
  cleanup.add(() => redis.stop());
  const { port } = new URL(redis.url);
  const running = await startService(cleanup, "agent-core", {
    env: {
      ...needed["agent-core"],
      PARLEY_NATS_URL: nats.urlFor("agent-core"),
      REDIS_URL: `redis://:not-the-password@127.0.0.1:${port}`,
    },
  });
  const startup = await running.until("/startupz", ({ body }) => body.includes("waiting for Redis"));
  assert.equal(startup.status, 503);
  assert.match(startup.body, /WRONGPASS/);
  assert.equal((await running.probe("/readyz")).status, 503);
  assert.equal(running.lines.filter((line) => line.includes("waiting for Redis")).length, 1);
  assert.ok(!startup.body.includes("not-the-password"));

  await actAsLeader(nats, redis.url);
  await redisCommand(redis.url, "CONFIG", "SET", "requirepass", "not-the-password");
  await running.until("/readyz", ({ status }) => status === 200);
  await running.until("/metrics", ({ body }) => /parley_redis_connected\{[^}]*\} 1/.test(body));

  await redis.stop();
  await running.until("/metrics", ({ body }) => /parley_redis_connected\{[^}]*\} 0/.test(body));
  assert.equal((await running.probe("/readyz")).status, 200);
});

test("ends store with exit code 78 when PostgreSQL does not have the language of the memory", async () => {
  const [nats, postgres] = await Promise.all([startTestNats(cleanup), startTestPostgres(cleanup)]);
  const running = await startService(cleanup, "store", {
    env: {
      PARLEY_NATS_URL: nats.urlFor("store"),
      DATABASE_URL: postgres.storeUrl,
      PARLEY__MEMORY__LANGUAGE: "klingon",
    },
  });
  const [code] = (await once(running.child, "exit")) as [number];
  await running.line(
    /cannot start: memory\.language: this PostgreSQL has no text search configuration "klingon"; list/,
  );
  assert.equal(code, 78);
});

test("starts store only with the newest migration, and names the one that is missing", async () => {
  const [nats, postgres] = await Promise.all([
    startTestNats(cleanup),
    startPostgres({ dataDir: join(await temporaryFolder(cleanup), "postgres") }),
  ]);
  cleanup.add(() => postgres.stop());
  const [previous, newest = ""] = knownMigrations().slice(-2);
  const running = await startService(cleanup, "store", {
    env: { PARLEY_NATS_URL: nats.urlFor("store"), DATABASE_URL: postgres.storeUrl },
  });
  const named = async () => {
    const { status, body } = await running.until("/startupz", (probe) => probe.body.includes("migration"));
    assert.deepEqual([status, body], [503, `waiting for the database: ${sentence}\n`]);
    assert.equal((await running.probe("/livez")).status, 200);
    assert.equal((await running.probe("/readyz")).status, 503);
  };
  const sentence =
    `migration ${newest} is not applied yet; ` +
    `run the migrations (Kubernetes: Job migrate-${version.replaceAll(".", "-")}, Compose: service migrate)`;
  await named();
  // The database of the version before.
  await migrate(postgres.ownerUrl, previous === undefined ? {} : { until: previous });
  await named();
  // While the migrations run, the store may meet another reason.
  const reasons = running.lines.flatMap((line) => /"reason":"([^"]*)","msg":"start delayed/.exec(line)?.[1] ?? []);
  assert.ok(reasons[0] === sentence, reasons.join("\n"));
  assert.deepEqual(
    reasons.filter((reason, index) => reason === reasons[index - 1]),
    [],
    "one line for each new reason",
  );
  await migrate(postgres.ownerUrl);
  await running.until("/readyz", ({ status }) => status === 200);
});

test("does not start tool-runner when its user cannot write the workspace", async () => {
  const nats = await startTestNats(cleanup);
  const folder = await temporaryFolder(cleanup);
  await chmod(folder, 0o755);
  const workspace = join(folder, "workspace");
  await mkdir(workspace, { mode: 0o555 });
  // Root can write everywhere, so the service runs as another user, who does not own the folder.
  const root = process.getuid?.() === 0;
  const uid = root ? 10_001 : (process.getuid?.() ?? 0);
  const running = await startService(cleanup, "tool-runner", {
    env: {
      ...needed["tool-runner"],
      PARLEY_NATS_URL: nats.urlFor("tool-runner"),
      PARLEY_WORKSPACE: workspace,
      PARLEY_STATE: join(folder, "state"),
      PARLEY_CHECKPOINTS: join(folder, "checkpoints"),
    },
    ...(root ? { uid } : {}),
  });
  const startup = await running.until("/startupz", ({ body }) => body.includes("the workspace"));
  assert.equal(startup.status, 503);
  assert.equal(
    startup.body,
    `waiting for the workspace: the workspace ${workspace} cannot be written by user ${uid} (EACCES): ` +
      `change its owner with "chown ${uid} ${workspace}", or set PARLEY_WORKSPACE to another folder\n`,
  );
  await running.line(/start delayed: waiting for the workspace/);

  await chmod(workspace, 0o777);
  if (root) {
    await running.until("/startupz", ({ body }) => body.includes("the state folder"));
    await chmod(folder, 0o777);
  }
  await running.until("/readyz", ({ status }) => status === 200);
});
