// What the Discord adapter receives: the connection with its losses, messages, changes, files, buttons and slash commands.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { WireError } from "@parley/contracts";
import { startDiscordPeer } from "@parley/testing";
import { propertyRuns } from "@parley/testing/property-runs";
import { AccountRejectedError } from "../src/channels/channel.ts";
import { TestHost } from "./support/channel-host.ts";
import { connectedDiscord, discordAdapter, keepConnected } from "./support/discord.ts";

describe("the Discord connection", { concurrency: true }, () => {
  test("continues after op 7, a lost socket and a close code without loss or repetition", async () => {
    await using opened = await connectedDiscord();
    const { peer, host } = opened;
    for (const [index, how] of (["reconnect", "drop", 4000, "invalid_resumable"] as const).entries()) {
      peer.gateway.disconnect(how);
      peer.say(`while away ${index}`);
      await host.untilAccepted(index + 1);
      await peer.until("the resume", () => (peer.gateway.resumed === index + 1 ? true : null));
    }
    assert.deepEqual(host.texts, ["while away 0", "while away 1", "while away 2", "while away 3"]);
    assert.equal(peer.gateway.identified, 1);
    assert.ok(peer.gateway.closedByClient.every((code) => code !== 1000 && code !== 1001));
  });

  test("replaces a connection whose heartbeats are not acknowledged", async () => {
    await using opened = await connectedDiscord({ heartbeatMs: 400 });
    const { peer, host } = opened;
    peer.gateway.muted = true;
    await peer.until("a resume", () => (peer.gateway.resumed === 1 ? true : null));
    peer.gateway.muted = false;
    peer.say("hello");
    await host.untilAccepted(1);
    await host.untilLogged(/a heartbeat was not acknowledged/);
  });

  test("continues on another replica from the last stored event when the owner dies", async () => {
    await using opened = await connectedDiscord({ heartbeatMs: 500 });
    const { peer, host } = opened;
    peer.say("stored");
    await host.untilAccepted(1);
    // The store hangs: what arrives now is received, and confirmed by no heartbeat.
    const hanging = Promise.withResolvers<never>();
    hanging.promise.catch(() => {});
    const accept = host.accept.bind(host);
    host.accept = () => hanging.promise;
    peer.say("received by the dead replica");
    const beats = peer.gateway.heartbeats.length;
    await peer.until("further heartbeats", () => (peer.gateway.heartbeats.length >= beats + 3 ? true : null));
    opened.lose();
    host.accept = accept;
    hanging.reject(new WireError("UNAVAILABLE", "died"));
    await opened.ended;
    await using _next = keepConnected(host, discordAdapter(peer));
    peer.say("after");
    await host.untilAccepted(3);
    assert.deepEqual(host.texts, ["stored", "received by the dead replica", "after"]);
    assert.equal(peer.gateway.identified, 1, "the session was resumed");
  });

  test("loses and repeats nothing over takeovers under traffic", async () => {
    const many = { limit: 100_000, windowMs: 1_000 };
    await using peer = await startDiscordPeer({ limits: { channel: many, global: many } });
    const host = new TestHost();
    const takeovers = propertyRuns(1_000) / 10;
    const written: string[] = [];
    let owner = keepConnected(host, discordAdapter(peer));
    await using _last = { [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose]() };
    // What is written before the first connection has no session that would keep it.
    await host.untilLogged(/"connected"/);
    const writing = setInterval(() => {
      if (written.length < host.accepted.length + 50) written.push(peer.say(`message ${written.length}`));
    }, 2);
    using _writing = { [Symbol.dispose]: () => clearInterval(writing) };
    for (let done = 0; done < takeovers; done++) {
      if (done % 3 === 1) host.refuseNext();
      if (done % 4 === 1) peer.gateway.disconnect("drop");
      await host.untilAccepted(host.accepted.length + 3);
      owner.lose();
      await owner.ended;
      owner = keepConnected(host, discordAdapter(peer));
    }
    clearInterval(writing);
    await host.untilAccepted(written.length);
    assert.deepEqual(
      host.accepted.map(({ externalId }) => externalId),
      written,
    );
    assert.equal(peer.gateway.identified, 1);
    assert.ok(peer.gateway.resumed >= takeovers);
  });

  test("receives a message again that could not be stored, before all later ones", async () => {
    await using opened = await connectedDiscord();
    const { peer, host } = opened;
    host.refuseNext();
    const first = peer.say("one");
    peer.say("two");
    await host.untilAccepted(2);
    assert.deepEqual(host.texts, ["one", "two"]);
    assert.equal(peer.gateway.deliveries.get(first), 2);
    host.refuseNext(new WireError("INVALID_INPUT", "text: too odd"));
    peer.say("poison");
    peer.say("three");
    await host.untilAccepted(3);
    assert.equal(host.texts[2], "three");
  });

  test("reads the missed messages of groups, threads and direct conversations after a lost session", async () => {
    await using opened = await connectedDiscord();
    const { peer, host } = opened;
    const thread = peer.startThread("plans");
    const atBot = `<@${peer.bot.id}>`;
    peer.say("a direct one");
    peer.say(`${atBot} one in a thread`, { channel: thread });
    await host.untilAccepted(2);
    peer.fail("GET /channels/{}", { kind: "server_error" });
    peer.gateway.forgetSessions();
    peer.gateway.disconnect("drop");
    peer.say("missed direct");
    peer.say(`${atBot} missed in the thread`, { channel: thread });
    peer.say(`${atBot} missed in the group`, { channel: peer.channelId });
    await peer.until("a new session", () => (peer.gateway.identified === 2 ? true : null));
    peer.say("live again");
    const drafts = await host.untilAccepted(6);
    // The stored position is that of the newest stored message, so an older one of another conversation must come first.
    assert.deepEqual(
      drafts.slice(2).map(({ text }) => text),
      ["missed direct", "missed in the thread", "missed in the group", "live again"],
    );
    assert.equal(drafts.find(({ text }) => text === "missed in the thread")?.group, peer.channelId);
    assert.equal(new Set(drafts.map(({ externalId }) => externalId)).size, 6);
  });

  test("reads the missed messages when the clock of this machine is ahead of Discord's", async () => {
    await using opened = await connectedDiscord({ clockBehindMs: 30_000 });
    const { peer, host } = opened;
    peer.say("direct");
    await host.untilAccepted(1);
    peer.gateway.forgetSessions();
    peer.gateway.disconnect("drop");
    peer.say("missed");
    await host.untilAccepted(2);
    assert.deepEqual(host.texts, ["direct", "missed"]);
  });

  test("reads the missed messages of a known channel when every group is admitted", async () => {
    await using opened = await connectedDiscord({}, { groups: ["*"] });
    const { peer, host } = opened;
    const channel = peer.channelId;
    peer.say(`<@${peer.bot.id}> hello`, { channel });
    await host.untilAccepted(1);
    peer.gateway.forgetSessions();
    peer.gateway.disconnect("drop");
    peer.say(`<@${peer.bot.id}> missed`, { channel });
    const drafts = await host.untilAccepted(2);
    assert.deepEqual(
      drafts.map(({ text }) => text),
      ["hello", "missed"],
    );
  });

  test("connects after a lost session when it may not read the messages of a channel", async () => {
    await using opened = await connectedDiscord();
    const { peer, host } = opened;
    const channel = peer.channelId;
    peer.say("a direct one");
    peer.say(`<@${peer.bot.id}> in the group`, { channel });
    await host.untilAccepted(2);
    peer.refuse(`${channel}/messages`, 403, 50_001, "Missing Access");
    peer.gateway.forgetSessions();
    peer.gateway.disconnect("drop");
    peer.say(`<@${peer.bot.id}> missed in the group`, { channel });
    peer.say("missed direct");
    await host.until("the direct message", () => (host.texts.includes("missed direct") ? true : null));
    await host.untilLogged(/missed messages not read/);
  });

  test("reports a refused token, switched-off intents and missing sharding with what to do", async () => {
    await using peer = await startDiscordPeer({ messageContent: false, shards: 2 });
    const host = new TestHost();
    const failure = async (more: object, token?: string): Promise<Error> => {
      const { lease } = host.lease();
      const error = await discordAdapter(peer, more, token)
        .connect?.(host, lease)
        .then(
          () => null,
          (reason: unknown) => reason,
        );
      assert.ok(error instanceof AccountRejectedError, String(error));
      return error;
    };
    assert.match((await failure({}, "wrong.token.x")).message, /reset it in the Developer Portal/);
    assert.match(
      (await failure({ require_mention: false })).message,
      /Message Content Intent.*Privileged Gateway Intents/,
    );
    assert.match((await failure({})).message, /raise shards/);
    await assert.rejects(
      discordAdapter(peer, { require_mention: false }).check?.(AbortSignal.timeout(60_000)) ?? Promise.resolve(),
      /Message Content Intent is off/,
    );
    assert.deepEqual(await discordAdapter(peer).check?.(AbortSignal.timeout(60_000)), { as: "parley" });
    assert.doesNotMatch(host.logText, /wrong\.token/);
  });

  test("has a connection per shard, each with its own servers and missed messages", async () => {
    await using peer = await startDiscordPeer({ shards: 2, identifyEveryMs: 300 });
    const hosts = [new TestHost(), new TestHost()] as const;
    const shard = Number((BigInt(peer.guildId) >> 22n) % 2n);
    await using held = new AsyncDisposableStack();
    for (const [slot, host] of hosts.entries())
      held.use(keepConnected(host, discordAdapter(peer, { shards: 2 }), slot));
    await peer.until("both connections", () => (peer.gateway.connected === 2 ? true : null));
    const mention = `<@${peer.bot.id}>`;
    peer.say(`${mention} in the server`, { channel: peer.channelId });
    peer.say("direct");
    await hosts[0].untilAccepted(shard === 0 ? 2 : 1);
    if (shard === 1) await hosts[1].untilAccepted(1);
    peer.gateway.forgetSessions();
    peer.gateway.disconnect("drop");
    peer.say(`${mention} missed in the server`, { channel: peer.channelId });
    peer.say("missed direct");
    await peer.until("new sessions", () => (peer.gateway.identified === 4 ? true : null));
    await hosts[0].untilAccepted(shard === 0 ? 4 : 2);
    if (shard === 1) await hosts[1].untilAccepted(2);
    const texts = (of: TestHost) => of.accepted.filter(({ direct }) => !direct).map(({ text }) => text);
    assert.deepEqual(texts(hosts[shard === 1 ? 1 : 0]), ["in the server", "missed in the server"]);
    assert.deepEqual(texts(hosts[shard === 1 ? 0 : 1]), []);
  });

  test("begins no session when the day's limit is used up", async () => {
    await using peer = await startDiscordPeer({ identifiesLeft: 0 });
    const host = new TestHost();
    await assert.rejects(
      discordAdapter(peer).connect?.(host, host.lease().lease) ?? Promise.resolve(),
      /no new session for up to 1 h/,
    );
    assert.equal(peer.gateway.identified, 0);
  });
});

describe("what Discord delivers", { concurrency: true }, () => {
  test("accepts direct messages, mentions and replies, and ignores bots, webhooks and notices", async () => {
    await using opened = await connectedDiscord();
    const { peer, host, adapter } = opened;
    const first = peer.say("in private");
    peer.say("not for the agent", { channel: peer.channelId });
    const mention = peer.say(`<@${peer.bot.id}> do <@${peer.people.bob}> see <:wave:123>?`, {
      channel: peer.channelId,
    });
    peer.say("spam", { fields: { webhook_id: "1" } });
    peer.say("pinned", { fields: { type: 6 } });
    peer.dispatch("MESSAGE_CREATE", { id: "no number" });
    peer.say("beep", { fields: { author: { id: "7", username: "other_bot", bot: true } } });
    const address = { channel: "discord", account: "main", conversation: peer.channelId };
    const text = { text: "answer", plain: "answer", ranges: [] };
    const sent = await adapter.send({ address, text, idempotencyKey: "k", attempts: 0 }, AbortSignal.timeout(60_000));
    assert.ok(sent.state === "sent" && sent.providerMessageId !== null);
    peer.say("why?", { channel: peer.channelId, replyToId: sent.providerMessageId });
    const drafts = await host.untilAccepted(3);
    const [direct, mentioned, reply] = drafts;
    assert.deepEqual(host.texts, ["in private", "do @user_0043 see :wave:?", "why?"]);
    assert.deepEqual([direct?.direct, direct?.externalId, direct?.replyTo.replyToId], [true, first, undefined]);
    assert.deepEqual([mentioned?.direct, mentioned?.addressed, mentioned?.replyTo.replyToId], [false, true, mention]);
    assert.deepEqual(reply?.quote, { text: "answer", author: "parley", ofAgent: true });
    assert.deepEqual(direct?.contact, { id: peer.people.ann, name: "user_0042" });
    assert.ok(Math.abs(Date.now() - Date.parse(direct?.sentAt ?? "")) < 20_000);
    await host.untilLogged(/invalid message at channel_id/);
  });

  test("passes every message of a group when mentions are not required", async () => {
    await using opened = await connectedDiscord({}, { require_mention: false });
    const { peer, host } = opened;
    peer.say("hello all", { channel: peer.channelId });
    const [draft] = await host.untilAccepted(1);
    assert.deepEqual([draft?.text, draft?.addressed], ["hello all", false]);
  });

  test("treats a thread as a conversation of its channel, also when it was never described", async () => {
    await using opened = await connectedDiscord();
    const { peer, host } = opened;
    const thread = peer.startThread("plans");
    peer.say(`<@${peer.bot.id}> hello`, { channel: thread });
    await host.untilAccepted(1);
    opened.lose();
    await opened.ended;
    const calls = peer.calls.filter(({ route }) => route === "GET /channels/{}").length;
    assert.equal(calls, 0, "the event had described it");
    await using _next = keepConnected(host, discordAdapter(peer));
    peer.say(`<@${peer.bot.id}> again`, { channel: thread });
    const drafts = await host.untilAccepted(2);
    for (const { conversation, group } of drafts) assert.deepEqual([conversation, group], [thread, peer.channelId]);
  });

  test("reports edits, deletions and reactions", async () => {
    await using opened = await connectedDiscord();
    const { peer, host } = opened;
    const id = peer.say("helo");
    peer.edit(id, "hello");
    // Discord adds a link preview.
    peer.dispatch("MESSAGE_UPDATE", { id, channel_id: peer.directChannelId(), embeds: [{}] });
    const reaction = {
      user_id: peer.people.ann,
      channel_id: peer.directChannelId(),
      message_id: id,
      message_author_id: peer.bot.id,
      emoji: { id: null, name: "👍" },
    };
    peer.dispatch("MESSAGE_REACTION_ADD", reaction);
    peer.dispatch("MESSAGE_REACTION_REMOVE", { ...reaction, message_author_id: undefined });
    peer.dispatch("MESSAGE_REACTION_ADD", { ...reaction, user_id: peer.bot.id });
    peer.dispatch("MESSAGE_DELETE", { id, channel_id: peer.directChannelId() });
    await host.until("four changes", () => (host.changed.length === 4 ? true : null));
    assert.deepEqual(
      host.changed.map(({ change }) => change),
      [
        { kind: "edited", text: "hello" },
        { kind: "reaction", reaction: "👍", ofAgent: true },
        { kind: "reaction", reaction: "👍", removed: true, ofAgent: false },
        { kind: "deleted" },
      ],
    );
    assert.ok(host.changed.every((change) => change.messageId === id));
    assert.equal(new Set(host.changed.map(({ externalId }) => externalId)).size, 4);
  });

  test("fetches files by their handle, up to the limit and only from Discord", async () => {
    await using opened = await connectedDiscord();
    const { peer, host, adapter } = opened;
    const file = { name: "a.txt", mediaType: "text/plain", content: Buffer.from("content") };
    peer.say("", { files: [file, { ...file, name: "b.txt" }] });
    const [draft] = await host.untilAccepted(1);
    assert.equal(draft?.text, "[file: a.txt]\n[file: b.txt]");
    const [first] = draft?.files ?? [];
    assert.deepEqual([first?.name, first?.bytes], ["a.txt", 7]);
    const handle = first?.handle ?? "";
    assert.doesNotMatch(handle, /hm=/);
    const fetchFile = (maxBytes: number) => adapter.fetchFile?.(handle, maxBytes, AbortSignal.timeout(60_000));
    assert.equal(Buffer.from((await fetchFile(7)) as Uint8Array).toString(), "content");
    assert.equal(await fetchFile(6), "too_large");
    peer.fail("GET file", { kind: "reset_before_commit" });
    await assert.rejects(Promise.resolve(fetchFile(7)), /the connection was lost/);
    const stored = peer.message(draft?.externalId ?? "");
    stored?.files.splice(0);
    await assert.rejects(Promise.resolve(fetchFile(7)), /no such file/);
    Object.assign(stored?.fields ?? {}, {
      attachments: [{ id: /"attachment":"(\d+)"/.exec(handle)?.[1], url: "https://evil.example/discordapp.com" }],
    });
    await assert.rejects(Promise.resolve(fetchFile(7)), /no such file/);
  });

  test("marks a forwarded message, which is never a command", async () => {
    await using opened = await connectedDiscord();
    const { peer, host } = opened;
    const fields = {
      message_reference: { type: 1 },
      message_snapshots: [{ message: { content: "/stop", attachments: [] } }],
    };
    peer.say("", { fields });
    const [draft] = await host.untilAccepted(1);
    assert.deepEqual([draft?.text, draft?.forwarded], ["/stop", {}]);
  });

  test("acknowledges a slash command in time while the store is slow, and passes it as typed text", async () => {
    await using opened = await connectedDiscord();
    const { peer, host } = opened;
    await peer.until("the commands", () => (peer.commands[0]?.name === "help" ? true : null));
    const { promise, resolve } = Promise.withResolvers<void>();
    const accept = host.accept.bind(host);
    host.accept = async (draft, position) => {
      await promise;
      return accept(draft, position);
    };
    const used = peer.slash("status", "now", { channel: peer.channelId });
    await peer.until("the acknowledgement", () => (used.acknowledged === 5 ? true : null));
    assert.deepEqual(host.accepted, [], "acknowledged before it is stored");
    resolve();
    const [draft] = await host.untilAccepted(1);
    assert.deepEqual([draft?.text, draft?.addressed, draft?.conversation], ["/status now", true, peer.channelId]);
    await peer.until("the response", () => (used.responses[0]?.content === "Received: `/status now`" ? true : null));
    assert.equal(used.responses[0]?.ephemeral, true);
  });

  test("runs a pressed button and shows in the message who decided", async () => {
    await using opened = await connectedDiscord();
    const { peer, host, adapter } = opened;
    const address = { channel: "discord", account: "main", conversation: peer.channelId };
    const text = { text: "Run it?", plain: "Run it?", ranges: [] };
    const actions = [{ label: "Approve", input: "/approve AB12C" }];
    const sent = await adapter.send(
      { address, text, actions, idempotencyKey: "k", attempts: 0 },
      AbortSignal.timeout(60_000),
    );
    const id = sent.state === "sent" ? (sent.providerMessageId ?? "") : "";
    host.actionResult = { text: "You may not decide this.", done: false };
    const refused = peer.press(id, "Approve", peer.people.bob);
    await peer.until("the refusal", () => (refused.responses[0]?.content === "You may not decide this." ? true : null));
    assert.equal(refused.responses[0]?.ephemeral, true);
    host.actionResult = { text: "Allowed.", done: true };
    const pressed = peer.press(id, "Approve");
    await peer.until("the decision", () => (peer.message(id)?.components.length === 0 ? true : null));
    assert.equal(peer.message(id)?.content, "Run it?\n\nuser_0042: Allowed.");
    assert.equal(pressed.acknowledged, 6);
    assert.deepEqual(
      host.acted.map(({ input, contact }) => [input, contact.id]),
      [
        ["/approve AB12C", peer.people.bob],
        ["/approve AB12C", peer.people.ann],
      ],
    );
  });
});
