// Leases of many accounts over several gateways: shares, joining, draining, paused and lost replicas, and the load of idle gateways.
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { after, before, describe, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { store } from "@parley/contracts";
import { Client } from "pg";
import type { ChannelAdapter } from "../src/channels/channel.ts";
import { ReconnectPauses } from "../src/channels/reconnect-pauses.ts";
import { Platform } from "./support/platform.ts";
import { startGatewayStack, type GatewayStack, type Replica } from "./support/stack.ts";

const accounts = 24;
/** What four idle gateways with 24 accounts may request from the store in a second. */
const idleRequestsPerSecond = 20;
/** A multiple of the intervals at which gateways ask, so that every observation contains the same requests. */
const observedMs = 4_000;

test("pauses longer after each failure, from the start after a good connection, and longest after a refusal", () => {
  const pauses = new ReconnectPauses();
  const [short, long] = [100, 60_000];
  assert.deepEqual(
    [short, short, short].map((ms) => pauses.after(ms, false)),
    [250, 500, 1_000],
  );
  assert.equal(pauses.after(long, false), 250);
  // A token that was revoked during the connection: the platform would refuse it again at once.
  assert.equal(pauses.after(long, true), 300_000);
  assert.equal(pauses.after(short, false), 250);
  for (let failures = 0; failures < 8; failures += 1) pauses.after(short, false);
  assert.equal(pauses.after(short, false), 15_000);
});

describe("leases of 24 accounts over four gateways", () => {
  let stack: GatewayStack;
  const platforms = Array.from({ length: accounts }, (_, index) => new Platform(`bot${index}`));
  const replicas = new Map<string, Replica>();

  before(async () => {
    stack = await startGatewayStack();
  });
  after(() => stack[Symbol.asyncDispose]());

  const start = async (name: string) => {
    // Accounts with files also look for messages that are incomplete.
    const files = { fetchFile: async () => "too_large" as const };
    // Every gateway sends the texts of half of the accounts, so it also looks for texts whose hint was lost.
    const own = platforms.map((platform, index) =>
      platform.account(
        { dm_policy: "open" },
        name,
        index % 2 === 0 ? files : { ...files, sendsWithoutConnection: true },
      ),
    );
    replicas.set(name, await stack.gateway({ name, overrides: { accounts: own } }));
  };
  const connected = (platform: Platform) => (platform.isConnected ? platform.owners.at(-1) : undefined);
  const holds = (name: string) => platforms.filter((platform) => connected(platform) === name).length;
  const until = (what: () => boolean) => Promise.race(platforms.map((platform) => platform.until(what)));
  const shared = (share: number, ...names: string[]) => until(() => names.every((name) => holds(name) === share));
  const requests = async () => {
    const metric = await stack.stack.store.metrics.registry.getSingleMetric("parley_store_requests_total")?.get();
    return (metric?.values ?? []).reduce((sum, { value }) => sum + value, 0);
  };

  test("gives joining gateways their share, and never two gateways one account", async (t) => {
    await start("a");
    await shared(accounts, "a");
    await Promise.all(["b", "c", "d"].map(start));
    const joinedAtMs = performance.now();
    await shared(accounts / 4, "a", "b", "c", "d");
    t.diagnostic(`shared ${Math.round(performance.now() - joinedAtMs)} ms after three gateways joined`);
    assert.deepEqual(
      platforms.map(({ mostAtOnce }) => mostAtOnce),
      platforms.map(() => 1),
    );
  });

  test("requests little from the store while nothing happens", async () => {
    // On a busy machine the last requests of the gateways that have joined are part of the first observation.
    await pollUntil(async () => {
      const before = await requests();
      await delay(observedMs);
      return (((await requests()) - before) / observedMs) * 1_000 <= idleRequestsPerSecond;
    }, `at most ${idleRequestsPerSecond} requests a second`);
  });

  test("moves an account to the gateway that the owner names, and back when they name none", async () => {
    const platform = platforms.find((each) => connected(each) === "a");
    assert.ok(platform !== undefined);
    const path = `/api/channels/test/bot${platforms.indexOf(platform)}/move`;
    const move = (replica: string | null) =>
      replicas.get("c")?.call(path, { method: "POST", body: { replica } }) ?? Promise.reject(new Error("no gateway"));
    assert.equal((await move("d")).status, 200);
    await until(() => connected(platform) === "d");
    // The others take what is left of the shares.
    await shared(accounts / 4, "a", "b", "c", "d");
    assert.equal((await move("nobody")).status, 404);
    assert.equal((await move(null)).status, 200);
    await until(() => connected(platform) === "a");
    await shared(accounts / 4, "a", "b", "c", "d");
    assert.ok(platforms.every(({ mostAtOnce }) => mostAtOnce === 1));
  });

  test("hands the accounts of a draining gateway to the others", async () => {
    await replicas.get("b")?.close();
    await shared(accounts / 3, "a", "c", "d");
    assert.ok(platforms.every(({ mostAtOnce }) => mostAtOnce === 1));
  });

  test("delivers on the gateway that holds the account, each message once", async () => {
    for (const [index, platform] of platforms.entries())
      platform.say({ conversation: `c${index}`, from: `c${index}`, text: `hello ${index}` });
    for (const platform of platforms) await platform.until(() => platform.sent.length === 1);
    assert.ok(platforms.every(({ sent }) => sent.length === 1));
  });

  test("sends texts whose hints were lost, on accounts of one gateway and of all", async () => {
    const sql = new Client({ connectionString: stack.stack.postgres.ownerUrl });
    await sql.connect();
    // The store publishes a hint for what it stores itself.
    await sql.query(
      `INSERT INTO parley.outbox (op_id, ordinal, channel, account, conversation, body, expires_at)
       SELECT gen_random_uuid(), 0, 'test', each, 'lost', '"without a hint"', now() + interval '10 minutes' FROM unnest(ARRAY['bot2', 'bot3']) AS each`,
    );
    await sql.end();
    for (const platform of platforms.slice(2, 4))
      await platform.until(() => platform.sent.some(({ text }) => text === "without a hint"));
  });

  test("opens every connection of an account with several, each with a lease of its own", async () => {
    const opened: string[] = [];
    const all = Promise.withResolvers<void>();
    const several = new Platform("several").account({}, "e", {
      slots: 2,
      connect: async (_, { name, slot, signal }) => {
        if (opened.push(`${name} ${slot}`) === 2) all.resolve();
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
    });
    const replica = await stack.gateway({ name: "e", overrides: { accounts: [several] } });
    await all.promise;
    assert.deepEqual(opened.toSorted(), ["test:several#0 0", "test:several#1 1"]);
    await replica.close();
  });

  test("listens on a replica without a lease, again after a failure, and until the drain", async () => {
    const seen: string[] = [];
    const listening = Promise.withResolvers<void>();
    const listen: ChannelAdapter["listen"] = async (host, signal) => {
      if (seen.push("begun") === 1) throw new Error("the port is in use");
      host.report({ state: "connected", as: "port 24" });
      listening.resolve();
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      seen.push("ended");
    };
    const account = new Platform("listening").account({}, "f", { ownedConnection: false, listen });
    delete account.adapter.connect;
    const replica = await stack.gateway({ name: "f", overrides: { accounts: [account] } });
    await listening.promise;
    await replica.close();
    assert.deepEqual(seen, ["begun", "begun", "ended"]);
  });

  test("stops the connection of a paused account on all gateways", async () => {
    const [platform] = platforms;
    assert.ok(platform !== undefined);
    const bus = await stack.stack.bus("channel-gateway");
    const pause = { channel: "test", account: "bot0", by: "test" };
    await bus.request(store.accountPause, { ...pause, paused: true });
    await platform.until(() => !platform.isConnected);
    await bus.request(store.accountPause, { ...pause, paused: false });
    await platform.until(() => platform.isConnected);
  });
});
