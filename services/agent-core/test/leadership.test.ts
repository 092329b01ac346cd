// Takeover with several standbys, on a real store and a real Redis: a killed leader still holds the lock, and its
// unfinished write delays the epoch of the new leader.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { createLogger, Startup } from "@parley/chassis";
import { controlPing, newId, store, WireError } from "@parley/contracts";
import { Cleanup, startStoreStack, startTestRedis, testBaseConfig, type StoreStack } from "@parley/testing";
import { Redis } from "ioredis";
import pg from "pg";
import { readConfig, type LeaseTimes } from "../src/config.ts";
import { becomeLeader, type Leadership } from "../src/leader/leadership.ts";
import { Standing } from "../src/leader/standing.ts";

/** The lock that a leader's writes hold shared and a takeover holds exclusively; services/store/src/db/operation.ts. */
const epochLock = 7_305_510_218;

const cleanup = new Cleanup();
let stack: StoreStack;
let redis: Redis;
let redisUrl: string;
let database: pg.Client;

before(async () => {
  const server = await startTestRedis(cleanup);
  stack = await startStoreStack(cleanup);
  redisUrl = server.url;
  redis = new Redis(server.url);
  cleanup.add(() => redis.quit());
  database = await open();
});
after(() => cleanup[Symbol.asyncDispose]());

beforeEach(async () => {
  await redis.set("parley:leader", "killed/1", "PX", 60_000);
  // The standbys of a test have seen no leader, so they expect the first epoch.
  await database.query("TRUNCATE parley.leadership_log, parley.leader_keys; UPDATE parley.leadership SET epoch = 0");
});

async function open(): Promise<pg.Client> {
  const client = new pg.Client(stack.postgres.ownerUrl);
  await client.connect();
  cleanup.add(() => client.end());
  return client;
}

/** Standbys that start at the same time. */
async function standbys(count: number, lease: Partial<LeaseTimes> = {}) {
  const stopping = new AbortController();
  const lost: string[] = [];
  const leaders: { name: string; leadership: Leadership }[] = [];
  const standings: Standing[] = [];
  const running = Array.from({ length: count }, async (_, index) => {
    const name = `agent-core-${index + 1}`;
    const standing = new Standing(new Startup());
    standings.push(standing);
    const config = readConfig(
      { REDIS_URL: redisUrl },
      testBaseConfig(stack.nats, "agent-core", { PARLEY_REPLICA: name }),
    );
    const bus = await stack.bus("agent-core");
    const log = createLogger({ service: "agent-core", replica: name, level: "silent" });
    config.lease = { ...config.lease, ...lease };
    const leadership = await becomeLeader(
      { config, bus, log, standing, lost: (reason) => lost.push(reason) },
      stopping.signal,
    );
    leaders.push({ name, leadership });
    return name;
  });
  return {
    first: Promise.race(running),
    leaders,
    standings,
    lost,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.allSettled(running);
      for (const { leadership } of leaders) await leadership.release();
    },
  };
}

/** A write of the killed leader that continues until it is ended. */
async function writing(): Promise<{ end(): Promise<unknown> }> {
  const client = await open();
  await client.query(`BEGIN; SELECT pg_advisory_xact_lock_shared(${epochLock})`);
  return { end: () => client.query("COMMIT") };
}

/** How many requests for the epoch are waiting. */
async function waiting(): Promise<number> {
  const { rows } = await database.query<{ count: number }>(
    "SELECT count(*)::int AS count FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted",
  );
  return rows[0]?.count ?? 0;
}

/** How often any replica has tried to take the lock. */
async function looks(): Promise<number> {
  return Number(/cmdstat_set:calls=(\d+)/.exec(await redis.info("commandstats"))?.[1] ?? 0);
}

/** `agent-core-1` of `agent-core-1/<incarnation>`. */
function replicaOf(owner: string | null | undefined): string | undefined {
  return owner?.split("/")[0];
}

async function epochs(): Promise<string[]> {
  const { rows } = await database.query<{ holder: string }>("SELECT holder FROM parley.leadership_log ORDER BY epoch");
  return rows.map(({ holder }) => replicaOf(holder) ?? "");
}

describe("a killed leader", () => {
  test("is replaced by one standby while the others leave it the time to get its epoch", async () => {
    const write = await writing();
    await using replicas = await standbys(4);
    await pollUntil(async () => (await waiting()) > 0, "a replica that waits");
    const holder = await redis.get("parley:leader");
    const before = await looks();
    await pollUntil(async () => (await looks()) >= before + 12, "12 attempts");
    assert.equal(await redis.get("parley:leader"), holder, "another replica has taken the lock meanwhile");
    await write.end();
    const first = await replicas.first;
    assert.equal(replicaOf(await redis.get("parley:leader")), first);
    assert.deepEqual(await epochs(), [first]);
    assert.deepEqual(replicas.lost, []);
  });

  test("is not replaced by a standby that was considered dead while it waited for its epoch", async () => {
    const write = await writing();
    await using replicas = await standbys(2);
    await pollUntil(async () => (await waiting()) > 0, "a replica that waits");
    const early = replicaOf(await redis.get("parley:leader"));
    await pollUntil(async () => replicaOf(await redis.get("parley:leader")) !== early, "another leader");
    await write.end();
    const first = await replicas.first;
    assert.notEqual(first, early);
    assert.deepEqual(await epochs(), [early, first]);
    assert.deepEqual(
      replicas.leaders.map(({ name }) => name),
      [first],
    );
  });

  test("takes the leadership from nobody when its request for an epoch arrives after another replica began to lead", async () => {
    const read = async () => {
      const { rows } = await database.query<{ epoch: number; holder: string }>(
        "SELECT epoch::int, holder FROM parley.leadership",
      );
      return rows[0] ?? assert.fail();
    };
    const { epoch } = await read();
    const leader = await stack.bus("agent-core");
    const pinged = Promise.withResolvers<void>();
    leader.serve(controlPing, async () => {
      pinged.resolve();
      return { epoch, holder: "killed/1" };
    });
    const write = await writing();
    await using replicas = await standbys(1);
    replicas.first.catch(() => undefined);
    await pinged.promise;
    await leader.drain();
    await pollUntil(async () => (await waiting()) > 0, "a request that waits");
    await redis.set("parley:leader", "other/1", "PX", 60_000);
    await database.query("UPDATE parley.leadership SET epoch = epoch + 1, holder = 'other/1'");
    await write.end();
    // Granted after the requests that wait.
    await database.query(`SELECT pg_advisory_lock(${epochLock}), pg_advisory_unlock(${epochLock})`);
    assert.deepEqual(await read(), { epoch: epoch + 1, holder: "other/1" });
    assert.deepEqual([replicas.leaders, await redis.get("parley:leader")], [[], "other/1"]);
  });

  test("is replaced without waiting for silence when its connection to the bus ends", async () => {
    const leader = await stack.bus("agent-core");
    const pinged = Promise.withResolvers<void>();
    leader.serve(controlPing, async () => {
      pinged.resolve();
      return { epoch: 1, holder: "killed/1" };
    });
    // Neither the lock's expiry, nor silence, nor a poll of the lock can cause the takeover.
    await using replicas = await standbys(2, { silentMs: 600_000, pollMs: 600_000 });
    await pinged.promise;
    await redis.persist("parley:leader");
    await leader.drain();
    const first = await replicas.first;
    assert.deepEqual(await epochs(), [first]);
  });
});

test("takes a free lock when it starts, before its first poll", { timeout: 20_000 }, async () => {
  await redis.del("parley:leader");
  await using replicas = await standbys(1, { silentMs: 600_000, pollMs: 600_000 });
  assert.equal(await replicas.first, "agent-core-1");
});

describe("a standby that gets no epoch", () => {
  const noReply =
    "waiting for the store: no replica can lead without it (parley.store.leadership.acquire: no reply in time)";

  test("releases the lock, is not ready and leads when the store answers again", async () => {
    await redis.del("parley:leader");
    const write = await writing();
    await using replicas = await standbys(1, { giveUpMs: 300, silentMs: 600, ttlMs: 600_000 });
    const [standing] = replicas.standings;
    assert.equal(standing?.problem, "waiting for a leader");
    await pollUntil(async () => standing.problem === noReply, "the reason");
    // It takes the lock again after each pause.
    const before = await looks();
    await pollUntil(async () => (await redis.get("parley:leader")) === null, "a released lock");
    await pollUntil(async () => (await looks()) >= before + 2, "two more attempts");
    assert.equal(standing.problem, noReply);
    await write.end();
    assert.equal(await replicas.first, "agent-core-1");
    assert.equal(standing.problem, null);
    assert.deepEqual(replicas.lost, []);
  });

  test("names the right that Redis denies, and leads when it has it", async () => {
    await redis.del("parley:leader");
    await redis.acl("SETUSER", "default", "-set");
    await using replicas = await standbys(1, { silentMs: 300 });
    const [standing] = replicas.standings;
    await pollUntil(async () => standing?.problem?.includes("NOPERM") === true, "the reason");
    assert.match(
      standing?.problem ?? "",
      /^waiting for Redis: no replica can lead without it \(NOPERM .*'set' command/,
    );
    await redis.acl("SETUSER", "default", "+set");
    assert.equal(await replicas.first, "agent-core-1");
    assert.equal(standing?.problem, null);
  });

  test("is told to try again when an unfinished write outlasts the store's lock timeout", async () => {
    const write = await writing();
    const core = await stack.bus("agent-core");
    const request = { opId: newId(), holder: "agent-core-1/1" };
    await assert.rejects(
      core.request(store.leadershipAcquire, request, { once: true, attemptMs: 8_000 }),
      (error) =>
        WireError.is(error, "UNAVAILABLE") && error.message === "database: canceling statement due to lock timeout",
    );
    await write.end();
  });
});
