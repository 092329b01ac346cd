import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { WireError, type TelegramAccount } from "@parley/contracts";
import { startTelegramPeer, type TelegramPeer } from "@parley/testing";
import type { ChannelAdapter } from "../src/channels/channel.ts";
import { createTelegram } from "../src/channels/telegram/index.ts";
import { TestHost } from "./support/channel-host.ts";

function settingsFor(peer: TelegramPeer): TelegramAccount {
  return {
    owners: [],
    allow_from: [],
    dm_policy: "open",
    groups: [],
    require_mention: true,
    token_env: "PARLEY_CHANNEL_TELEGRAM",
    mode: "poll",
    api_root: peer.url,
  };
}

function adapterFor(peer: TelegramPeer, token = peer.token): Required<Pick<ChannelAdapter, "connect">> {
  const adapter = createTelegram("main", settingsFor(peer), { token_env: token });
  return { connect: async (host, lease) => adapter.connect?.(host, lease) };
}

// Each test has its own bot; most of the time is waiting for pauses that the platform requires.
describe("polling", { concurrency: true }, () => {
  // design: 001.20
  test("accepts updates in order with their cursors and confirms them afterwards", async () => {
    await using peer = await startTelegramPeer();
    const host = new TestHost();
    const first = peer.say("one");
    peer.say("two");
    const { lease, lose } = host.lease();
    const connection = adapterFor(peer).connect(host, lease);
    await host.untilAccepted(2);
    peer.say("three");
    await host.untilAccepted(3);
    await peer.until("everything to be confirmed", () => (peer.pending === 0 ? true : null));
    lose();
    await connection;
    assert.deepEqual(host.texts, ["one", "two", "three"]);
    assert.equal(host.cursor, `${first + 3} ${peer.bot.id}`);
    assert.deepEqual(
      host.accepted.map((draft) => draft.externalId),
      [first, first + 1, first + 2].map(String),
    );
  });

  test("receives an unstored update again, before all later ones", async () => {
    await using peer = await startTelegramPeer();
    const host = new TestHost();
    const first = peer.say("one");
    const second = peer.say("two");
    peer.say("three");
    host.refuseNext();
    await assert.rejects(adapterFor(peer).connect(host, host.lease().lease), /the store is away/);
    assert.equal(host.cursor, null);
    assert.equal(peer.pending, 3);

    const again = host.lease();
    const connection = adapterFor(peer).connect(host, again.lease);
    await host.untilAccepted(3);
    again.lose();
    await connection;
    assert.deepEqual(host.texts, ["one", "two", "three"]);
    assert.equal(peer.deliveries(first), 2);
    assert.equal(peer.deliveries(second), 2);
  });

  test("continues at the saved cursor when the last update was never confirmed", async () => {
    await using peer = await startTelegramPeer();
    const host = new TestHost();
    peer.say("one");
    const first = host.lease();
    // Ends between storing the update and requesting the next one.
    const untilKept = host
      .until("the first message", () => (host.accepted.length === 1 ? true : null))
      .then(first.lose);
    const dying = adapterFor(peer).connect(host, first.lease);
    await untilKept;
    await dying;

    peer.say("two");
    const next = host.lease();
    const connection = adapterFor(peer).connect(host, next.lease);
    await host.untilAccepted(2);
    next.lose();
    await connection;
    assert.deepEqual(host.texts, ["one", "two"]);
    assert.equal(host.attempts, 2, "the first message was not even offered again");
  });

  test("receives everything when the account is changed to another bot", async () => {
    await using before = await startTelegramPeer();
    await using peer = await startTelegramPeer({ token: "7000009:AAAnotherBotForTestsOnlyNotARealToken" });
    const host = new TestHost();
    for (const text of ["one", "two", "three"]) before.say(text);
    const earlier = host.lease();
    const ending = adapterFor(before).connect(host, earlier.lease);
    await host.untilAccepted(3);
    earlier.lose();
    await ending;

    const first = peer.say("hello");
    peer.say("to the other bot");
    peer.say("as well");
    peer.say("and again");
    const { lease, lose } = host.lease();
    const connection = adapterFor(peer).connect(host, lease);
    await host.until("the last update", () => (host.cursor?.startsWith(String(first + 4)) === true ? true : null));
    lose();
    await connection;
    assert.equal(peer.deliveries(first), 1);
  });

  test("continues at a cursor of an earlier version, which names no bot", async () => {
    await using peer = await startTelegramPeer();
    const host = new TestHost();
    host.cursor = String(peer.say("one") + 1);
    peer.say("two");
    const { lease, lose } = host.lease();
    const connection = adapterFor(peer).connect(host, lease);
    await host.untilAccepted(1);
    lose();
    await connection;
    assert.deepEqual(host.texts, ["two"]);
  });

  test("marks each part of an album that is not the last one of its batch", async () => {
    await using peer = await startTelegramPeer();
    const host = new TestHost();
    const part = (text: string, from = 42) => peer.say(text, { from, chat: -1, fields: { media_group_id: "album" } });
    part("one");
    part("of another person", 43);
    part("two");
    const { lease, lose } = host.lease();
    const connection = adapterFor(peer).connect(host, lease);
    const drafts = await host.untilAccepted(3);
    lose();
    await connection;
    assert.deepEqual(
      drafts.map(({ text, moreOfAlbum }) => [text, moreOfAlbum]),
      [
        ["one", true],
        ["of another person", undefined],
        ["two", undefined],
      ],
    );
  });

  test("skips an update that can never be stored", async () => {
    await using peer = await startTelegramPeer();
    const host = new TestHost();
    peer.say("poison");
    peer.push("message", { message_id: "no number" });
    peer.say("good");
    host.refuseNext(new WireError("INVALID_INPUT", "text: too odd"));
    const { lease, lose } = host.lease();
    const connection = adapterFor(peer).connect(host, lease);
    await host.untilAccepted(1);
    lose();
    await connection;
    assert.deepEqual(host.texts, ["good"]);
    await host.untilLogged(/can never be stored/);
    await host.untilLogged(/invalid message at message_id/);
  });

  test("logs a conflict in the older of two pollers, and both stay alive", async () => {
    await using peer = await startTelegramPeer();
    const zombieHost = new TestHost();
    const ownerHost = new TestHost();
    const zombie = zombieHost.lease();
    const owner = ownerHost.lease();
    const zombieConnection = adapterFor(peer).connect(zombieHost, zombie.lease);
    await peer.untilCalls("getUpdates", 1);
    const ownerConnection = adapterFor(peer).connect(ownerHost, owner.lease);
    await zombieHost.untilLogged(/terminated by other getUpdates/);
    assert.equal(peer.conflicts, 1);
    zombie.lose();
    await zombieConnection;
    peer.say("hello");
    await ownerHost.untilAccepted(1);
    owner.lose();
    await ownerConnection;
    assert.deepEqual(zombieHost.accepted, []);
  });

  test("ends a long poll immediately when the lease is lost", async () => {
    await using peer = await startTelegramPeer();
    const host = new TestHost();
    const { lease, lose } = host.lease();
    const connection = adapterFor(peer).connect(host, lease);
    await peer.untilCalls("getUpdates", 1);
    lose();
    await connection;
    // The platform would have answered it at the end of its timeout.
    assert.deepEqual(
      peer.calls.flatMap(({ method, status }) => (method === "getUpdates" ? [status] : [])),
      [null],
    );
  });

  test("waits after 429 and retries after 5xx and broken connections", async () => {
    await using peer = await startTelegramPeer();
    const host = new TestHost();
    peer.fail("getMe", { kind: "server_error" });
    peer.fail("getUpdates", { kind: "too_many", retryAfterSeconds: 1 });
    peer.fail("getUpdates", { kind: "reset_before_commit" });
    peer.fail("getUpdates", { kind: "bad_gateway" });
    peer.say("hello");
    const { lease, lose } = host.lease();
    const connection = adapterFor(peer).connect(host, lease);
    await host.untilAccepted(1);
    lose();
    await connection;
    const waits = host.logged.map((line) => (line.fields as { waitMs?: number }).waitMs);
    assert.deepEqual(waits, [250, 1_000, 500, 1_000]);
  });

  test("removes an existing webhook, also when it is set again later", async () => {
    await using peer = await startTelegramPeer({ redeliveryMs: 500 });
    const host = new TestHost();
    const setWebhook = (): Promise<Response> =>
      fetch(`${peer.url}/bot${peer.token}/setWebhook?url=${encodeURIComponent("http://127.0.0.1:1/x")}`);
    await setWebhook();
    const { lease, lose } = host.lease();
    const connection = adapterFor(peer).connect(host, lease);
    await peer.untilCalls("getUpdates", 1);
    await setWebhook();
    peer.say("one");
    await host.untilAccepted(1);
    lose();
    await connection;
    assert.equal(peer.webhook, null);
  });

  test("reports an unknown token without revealing it", async () => {
    await using peer = await startTelegramPeer();
    const host = new TestHost();
    const adapter = adapterFor(peer, "1:wrong-token-of-nobody");
    await assert.rejects(adapter.connect(host, host.lease().lease), (error: Error) => {
      assert.match(error.message, /token refused by Telegram/);
      assert.doesNotMatch(error.message + host.logText, /wrong-token/);
      return true;
    });
  });
});
