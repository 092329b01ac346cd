// The rights of agent-core's Redis user, on a real Redis: its own queue and lock work, everything else is refused.
import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { after, before, describe, test } from "node:test";
import { createLogger } from "@parley/chassis";
import { redisRules, redisUser } from "@parley/contracts";
import { startRedis, type RedisServer } from "@parley/local";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { Redis } from "ioredis";
import { LeaderLock } from "../src/leader/lock.ts";
import { TurnQueue } from "../src/queue/turn-queue.ts";

const log = createLogger({ service: "agent-core", replica: "test", level: "silent" });
const cleanup = new Cleanup();
let server: RedisServer;
/** With all rights. */
let admin: Redis;
/** With agent-core's rights. */
let restricted: Redis;

before(async () => {
  const dataDir = join(await temporaryFolder(cleanup), "redis");
  server = await startRedis({ dataDir, namespace: "parley" });
  cleanup.add(() => server.stop());
  admin = new Redis(server.url);
  restricted = new Redis(server.serviceUrl);
  cleanup.add(async () => {
    admin.disconnect();
    restricted.disconnect();
  });
});
after(() => cleanup[Symbol.asyncDispose]());

/** Polls until the condition holds. */
async function waitUntil(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await delay(20);
}

const refusal = /NOPERM|has no permissions|can't access at least one of the keys/;

/** Name, arity, seven more fields, subcommands. */
type CommandInfo = [string, number, ...unknown[]];

describe("the Redis user of agent-core", () => {
  test("may do all that the queue and the lock do", async () => {
    const drained: string[] = [];
    const queue = new TurnQueue({
      redis: { url: server.serviceUrl },
      namespace: "parley",
      concurrency: 2,
      log,
      drain: async (sessionId) => {
        drained.push(sessionId);
        if (sessionId === "failing") throw new Error("this wake-up fails");
      },
      onReconnect: () => undefined,
    });
    cleanup.add(() => queue.close());
    await waitUntil(() =>
      queue
        .counts()
        .then(() => true)
        .catch(() => false),
    );
    await queue.wake("plain", 0);
    await queue.wake("urgent", 1);
    await queue.wake("keyed", 2, { key: "one" });
    await queue.wake("late", 2, { key: "two", delayMs: 50 });
    await queue.wake("failing", 3);
    queue.run();
    await waitUntil(() => new Set(drained).size === 5);
    await waitUntil(async () => (await queue.counts())["failed"] === 1);

    const lock = new LeaderLock({ url: server.serviceUrl }, "parley", 60_000, log);
    cleanup.add(async () => lock.close());
    await lock.connect();
    assert.equal(await lock.acquire("a"), "a");
    assert.equal(await lock.renew("a"), true);
    assert.equal(await lock.takeOver("a", "b"), true);
    await lock.release("b");
    assert.equal(await lock.acquire("c"), "c");

    assert.deepEqual(await admin.acl("LOG"), [], "Redis refused a command of the queue or the lock");
  });

  test("may run no other command of the server", async () => {
    // `reset` and `auth` belong to the login: the server answers them to everybody.
    const allowed = new Set(["reset", "auth", ...redisRules("parley").map((rule) => rule.replace(/^\+/, ""))]);
    const all = ((await admin.call("COMMAND")) as CommandInfo[]).flatMap((info) => {
      const [subcommands = []] = info.slice(9) as [CommandInfo[]?];
      return subcommands.length === 0 ? [info] : subcommands;
    });
    assert.ok(all.length > 300, `${all.length} commands`);
    for (const [name, arity] of all.filter(([each]) => !allowed.has(each))) {
      const words = name.split("|");
      const given = Array.from({ length: Math.abs(arity) - words.length }, () => "parley:x");
      const verdict = String(await admin.call("ACL", "DRYRUN", redisUser, ...words, ...given));
      assert.match(verdict, refusal, `${name}: ${verdict}`);
    }
    for (const words of [
      ["CONFIG", "GET", "*"],
      ["CLIENT", "LIST"],
      ["CLIENT", "KILL", "TYPE", "normal"],
      ["ACL", "LIST"],
      ["ACL", "SETUSER", redisUser, "+@all"],
      ["SCRIPT", "FLUSH"],
      ["KEYS", "*"],
      ["SCAN", "0"],
      ["FLUSHALL"],
      ["SUBSCRIBE", "parley:x"],
    ]) {
      const [command = "", ...rest] = words;
      await assert.rejects(restricted.call(command, ...rest), refusal, words.join(" "));
    }
  });

  test("may access no key outside its namespace, directly or in a script", async () => {
    await admin.set("other:secret", "s3cret");
    await admin.set("parleyx", "s3cret");
    for (const key of ["other:secret", "parleyx", "parley"]) {
      await assert.rejects(restricted.get(key), refusal);
      await assert.rejects(restricted.set(key, "x"), refusal);
      await assert.rejects(restricted.del(key), refusal);
      await assert.rejects(restricted.eval("return redis.call('GET', KEYS[1])", 1, key), refusal);
      // A script that does not declare its key.
      await assert.rejects(restricted.eval(`return redis.call('GET', '${key}')`, 0), refusal);
    }
    assert.equal(await admin.get("other:secret"), "s3cret");
    await restricted.set("parley:own", "1");
    assert.equal(await restricted.get("parley:own"), "1");
  });
});
