// Slack in socket mode: messages, acknowledgements, reconnects and interactions.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { slackChannel, WireError } from "@parley/contracts";
import { startSlackPeer, type SlackPeer } from "@parley/testing";
import { AccountRejectedError } from "../src/channels/channel.ts";
import { createSlack } from "../src/channels/slack/index.ts";
import { TestHost } from "./support/channel-host.ts";
import { serveSlack, slackAdapter } from "./support/slack.ts";

const bot = "U0PARLEY";

/** Resolves when all deliveries are acknowledged. */
async function settled(peer: SlackPeer): Promise<void> {
  await peer.until("all acknowledgements", () =>
    peer.deliveries.every(({ acknowledgements }) => acknowledgements > 0) ? true : null,
  );
}

describe("socket mode", { concurrency: true }, () => {
  test("accepts direct messages, mentions and threads as conversations of their own", async () => {
    await using served = await serveSlack();
    const { peer, host } = served;
    peer.name("U0ANN", "Ann");
    peer.say("hello <https://example.org|there> &amp; &lt;here&gt;");
    await host.untilAccepted(1);
    const { ts } = peer.say(`<@${bot}> look at <#C0GENERAL|general>`, { channel: "C0GENERAL" });
    await host.untilAccepted(2);
    peer.say("no mention", { channel: "C0GENERAL", threadTs: ts });
    await host.untilAccepted(3);
    peer.say("in a group of people", { channel: "G0GROUP" });
    await host.untilAccepted(4);
    await settled(peer);
    assert.deepEqual(
      host.accepted.map(({ conversation, group, direct, addressed, text, contact }) => [
        conversation,
        group,
        direct,
        addressed,
        text,
        contact.name,
      ]),
      [
        ["D0ANN", undefined, true, true, "hello there (https://example.org) & <here>", "Ann"],
        [`C0GENERAL/${ts}`, "C0GENERAL", false, true, "look at #general", "Ann"],
        [`C0GENERAL/${ts}`, "C0GENERAL", false, false, "no mention", "Ann"],
        [host.accepted[3]?.conversation, "G0GROUP", false, false, "in a group of people", "Ann"],
      ],
    );
    assert.equal(host.accepted.length, 4, "a mention is two events and one message");
    assert.equal(peer.deliveries.length, 5);
  });

  test("counts an answer to the agent's own message as addressed", async () => {
    await using served = await serveSlack({ reply_in_thread: false });
    const { peer, host, adapter } = served;
    const text = { text: "Hi", plain: "Hi", ranges: [] };
    const address = { channel: "slack", account: "main", conversation: "C0GENERAL" };
    const part = { address, text, idempotencyKey: "k", attempts: 0 };
    const sent = await adapter.send(part, AbortSignal.timeout(60_000));
    assert.ok(sent.state === "sent" && sent.providerMessageId !== null);
    peer.say("thanks", { channel: "C0GENERAL", threadTs: sent.providerMessageId });
    peer.say("top", { channel: "C0GENERAL" });
    const [one, two] = await host.untilAccepted(2);
    assert.deepEqual([one?.addressed, one?.conversation], [true, `C0GENERAL/${sent.providerMessageId}`]);
    assert.deepEqual([two?.addressed, two?.conversation], [false, "C0GENERAL"]);
  });

  test("acknowledges a message only after it is stored, and keeps the order meanwhile", async () => {
    await using served = await serveSlack();
    const { peer, host } = served;
    host.refuseNext();
    host.refuseNext();
    peer.say("one");
    peer.say("two");
    await host.untilAccepted(2);
    await settled(peer);
    assert.deepEqual(host.texts, ["one", "two"]);
    assert.deepEqual(
      peer.deliveries.map(({ sends }) => sends),
      [1, 1],
    );
  });

  test("gets a message again that was not stored in time, and stores a redelivery once", async () => {
    await using served = await serveSlack({}, { ackTimeoutMs: 300, retryDelaysMs: [0, 50, 100] });
    const { peer, host } = served;
    // The retries of the adapter end after 2 s; Slack has delivered it again by then.
    for (let count = 0; count < 4; count += 1) host.refuseNext();
    const { deliveries } = peer.say("one");
    await host.untilAccepted(1);
    const [delivery] = deliveries;
    assert.ok(delivery !== undefined);
    // Each one that was sent again is passed on too.
    await peer.until("all acknowledgements", () => (delivery.acknowledgements === delivery.sends ? true : null));
    assert.ok(delivery.sends > 1);
    const before = host.attempts;
    assert.equal(await peer.repeat(delivery), null);
    assert.equal(host.attempts, before + 1, "the header of the retry does not drop it");
    assert.deepEqual(host.texts, ["one"]);
  });

  test("acknowledges what can never be stored, and events that are not for it", async () => {
    await using served = await serveSlack();
    const { peer, host } = served;
    host.refuseNext(new WireError("INVALID_INPUT", "text: too odd"));
    peer.say("poison");
    peer.push({ type: "message", channel: "C0X", ts: "nonsense", user: "U0ANN", text: "x" });
    peer.push({ type: "channel_rename" });
    peer.push({ type: "message", subtype: "channel_join", channel: "C0X", ts: "1.1", user: "U0ANN", text: "x" });
    peer.push({ type: "message", channel: "C0X", ts: "1.2", user: bot, text: "own" });
    peer.push({ type: "message", channel: "C0X", ts: "1.3", user: "U0BOT", bot_id: "B1", text: "of a bot" });
    peer.say("good");
    await host.untilAccepted(1);
    await settled(peer);
    assert.deepEqual(host.texts, ["good"]);
    await host.untilLogged(/can never be stored/);
  });

  test("opens the next connection before the announced end of the old one", async () => {
    await using served = await serveSlack();
    const { peer, host } = served;
    peer.announce("warning");
    await peer.until("a second connection", () => (peer.sockets.opened === 2 ? true : null));
    await peer.until("the end of the first", () => (peer.sockets.open === 1 ? true : null));
    peer.announce("refresh_requested");
    await peer.until("a third connection", () => (peer.sockets.opened === 3 ? true : null));
    peer.say("after");
    await host.untilAccepted(1);
    // The second connection may deliver the message before the third one is ready.
    const connected = () => host.reported.filter(({ state }) => state === "connected").length;
    await host.until("three reports", () => (connected() === 3 ? true : null));
  });

  test("ends when the connection breaks, and gets the event on the next connection", async () => {
    await using peer = await startSlackPeer({ retryDelaysMs: [0, 100, 300] });
    const adapter = slackAdapter(peer);
    const host = new TestHost();
    const first = host.lease();
    const ended = adapter.connect?.(host, first.lease);
    await peer.untilConnected();
    host.refuseNext(new Error("the process is stuck"));
    host.refuseNext(new Error("the process is stuck"));
    const { deliveries } = peer.say("one");
    await host.until("the first attempt", () => (host.attempts > 0 ? true : null));
    peer.dropSockets();
    await ended;
    const again = adapter.connect?.(host, first.lease);
    await host.untilAccepted(1);
    await settled(peer);
    assert.equal(deliveries[0]?.sends, 2);
    assert.deepEqual(host.texts, ["one"]);
    first.lose();
    await again;
  });

  test("gets each event on one of several connections, and on another one when the first is stuck", async () => {
    await using peer = await startSlackPeer({ ackTimeoutMs: 600_000 });
    const hosts = [new TestHost(), new TestHost()] as const;
    const adapters = hosts.map(() => slackAdapter(peer, { connections: 2 }));
    assert.deepEqual(
      adapters.map(({ slots }) => slots),
      [2, 2],
    );
    const leases = hosts.map((host) => host.lease());
    const ended = hosts.map(async (host, slot) => {
      const held = leases[slot];
      if (held !== undefined) await adapters[slot]?.connect?.(host, { ...held.lease, slot });
    });
    await peer.untilConnected(2);
    const written = Array.from({ length: 8 }, (_, index) => peer.say(`message ${index}`).ts);
    await settled(peer);
    const stored = () => hosts.flatMap(({ accepted }) => accepted.map(({ externalId }) => externalId));
    assert.equal(stored().length, written.length);
    assert.equal(new Set(stored()).size, written.length);
    for (const { accepted } of hosts) assert.ok(accepted.length > 0);
    // The next two events go to different connections; one of these replicas is stuck.
    const stuck = Promise.withResolvers<never>();
    const reached = Promise.withResolvers<void>();
    hosts[0].accept = () => {
      reached.resolve();
      return stuck.promise;
    };
    const accepted = hosts[1].accepted.length;
    peer.say("a");
    peer.say("b");
    await Promise.all([reached.promise, hosts[1].untilAccepted(accepted + 1)]);
    peer.timeOut();
    await hosts[1].untilAccepted(accepted + 2);
    stuck.reject(new WireError("UNAVAILABLE", "the process was stuck"));
    for (const { lose } of leases) lose();
    await Promise.all(ended);
  });

  test("closes the connection when the lease is lost", async () => {
    await using peer = await startSlackPeer();
    const host = new TestHost();
    const { lease, lose } = host.lease();
    const ended = slackAdapter(peer).connect?.(host, lease);
    await peer.untilConnected();
    lose();
    await ended;
    await peer.until("no connection", () => (peer.sockets.open === 0 ? true : null));
  });

  test("reports refused tokens and a switched-off socket mode without revealing a secret", async () => {
    await using peer = await startSlackPeer();
    const host = new TestHost();
    const refused = async (connect: Promise<void> | undefined, pattern: RegExp) => {
      await assert.rejects(connect ?? Promise.resolve(), (error: Error) => {
        assert.ok(error instanceof AccountRejectedError, error.message);
        assert.match(error.message, pattern);
        assert.doesNotMatch(error.message + host.logText, /StandIn|standin|wrong-token|ticket/);
        return true;
      });
    };
    const wrong = slackAdapter(peer, {}, "xoxb-wrong-token");
    await refused(wrong.connect?.(host, host.lease().lease), /the token is wrong \(invalid_auth\)/);
    await assert.rejects(wrong.check?.(AbortSignal.timeout(60_000)) ?? Promise.resolve(), AccountRejectedError);
    const exchanged = { token: peer.tokens.bot, appToken: peer.tokens.bot, signingSecret: "" };
    const account = slackChannel.settings.parse({ token_env: "PARLEY_CHANNEL_A", app_token_env: "PARLEY_CHANNEL_B" });
    assert.throws(
      () => createSlack("main", account, exchanged),
      /the token in PARLEY_CHANNEL_B is not an app-level token, which begins with xapp-/,
    );
    const adapter = slackAdapter(peer);
    assert.deepEqual(await adapter.check?.(AbortSignal.timeout(60_000)), { as: "@parley (Stand-in)" });
    const connected = adapter.connect?.(host, host.lease().lease);
    await peer.untilConnected();
    peer.announce("link_disabled");
    await refused(connected, /Socket Mode is switched off/);
    peer.revoke(peer.tokens.app);
    await refused(adapter.connect?.(host, host.lease().lease), /the token is wrong/);
    await peer.close();
    await assert.rejects(adapter.connect?.(host, host.lease().lease) ?? Promise.resolve(), /could not be reached/);
  });

  test("ignores frames that are no envelopes", async () => {
    await using served = await serveSlack();
    const { peer, host } = served;
    for (const text of ["", "nonsense", "[]", "null", '{"type":5}', '{"type":"events_api"}', '{"type":"hello"}']) {
      peer.sendRaw(text);
    }
    peer.sendRaw(JSON.stringify({ type: "events_api", envelope_id: "e1", payload: { type: "event_callback" } }));
    peer.say("good");
    await host.untilAccepted(1);
    assert.deepEqual(host.texts, ["good"]);
  });
});

describe("interactions", { concurrency: true }, () => {
  const send = async (served: Awaited<ReturnType<typeof serveSlack>>, conversation = "D0ANN") => {
    const address = { channel: "slack", account: "main", conversation };
    const text = { text: "**Allow** it?", plain: "**Allow** it?", ranges: [] };
    const actions = [
      { label: "Allow", input: "/approve AB12C" },
      { label: "Deny", input: "/deny AB12C" },
    ];
    const part = { address, text, actions, idempotencyKey: "k", attempts: 0 };
    assert.equal((await served.adapter.send(part, AbortSignal.timeout(60_000))).state, "sent");
    return served.peer.sent.at(-1)?.ts ?? "";
  };

  test("runs a pressed button once and shows the decision in its message", async () => {
    await using served = await serveSlack();
    const { peer, host } = served;
    peer.name("U0ANN", "Ann");
    const ts = await send(served);
    const press = peer.press(ts, "Allow");
    await peer.until("the decision", () => (peer.sent[0]?.edits === 1 ? true : null));
    await settled(peer);
    assert.deepEqual(
      host.acted.map(({ input, contact, conversation, direct }) => [input, contact.id, conversation, direct]),
      [["/approve AB12C", "U0ANN", "D0ANN", true]],
    );
    assert.equal(peer.sent[0]?.text, "Allow it?\nAnn: Allowed.");
    assert.deepEqual(peer.sent[0]?.buttons, []);
    assert.equal(await peer.repeat(press), null);
    assert.equal(host.acted.length, 1, "a delivery that Slack repeats is not a second press");
  });

  test("tells somebody who may not decide, and leaves the buttons", async () => {
    await using served = await serveSlack();
    const { peer, host } = served;
    host.actionResult = { text: "You may not decide this.", done: false };
    const ts = await send(served, "C0GENERAL");
    peer.press(ts, "Deny", "U0EVE");
    const [first, second] = await peer.untilSent(2);
    assert.deepEqual([second?.onlyFor, second?.text], ["U0EVE", "You may not decide this."]);
    assert.equal(first?.buttons.length, 2);
  });

  test("passes a slash command on as the command that it names", async () => {
    await using served = await serveSlack();
    const { peer, host } = served;
    const given: [string, string, string][] = [
      ["/parley", "help all", "/help all"],
      ["/parley", "/help", "/help"],
      ["/help", "", "/help"],
      ["/parley", "", "/help"],
      ["/parley", "what is new?", "what is new?"],
    ];
    for (const [index, [command, text]] of given.entries()) {
      peer.command(command, text, { channel: "C0GENERAL" });
      await host.untilAccepted(index + 1);
    }
    assert.deepEqual(
      host.texts,
      given.map(([, , expected]) => expected),
    );
    const [draft] = host.accepted;
    assert.deepEqual([draft?.conversation, draft?.direct, draft?.addressed], ["C0GENERAL", false, true]);
    await settled(peer);
    assert.equal(await peer.repeat(peer.deliveries[0] ?? peer.command("/help", "")), null);
    assert.equal(host.attempts, given.length, "a repeated delivery runs no command again");
  });

  test("reports edits, deletions, reactions and membership", async () => {
    await using served = await serveSlack();
    const { peer, host, adapter } = served;
    const { ts } = peer.say("first");
    await host.untilAccepted(1);
    peer.edit(ts, "second");
    await host.until("the edit", () => (host.changed.length === 1 ? true : null));
    peer.erase(ts);
    await host.until("the deletion", () => (host.changed.length === 2 ? true : null));
    const sent = await send(served);
    peer.react("D0ANN", sent, "thumbsup");
    peer.push({ type: "member_joined_channel", user: bot, channel: "C0NEW", inviter: "U0ANN" });
    peer.push({ type: "member_joined_channel", user: "U0EVE", channel: "C0NEW" });
    await host.until("all changes", () => (host.changed.length === 4 ? true : null));
    await settled(peer);
    assert.deepEqual(
      host.changed.map(({ change, conversation }) => [conversation, change]),
      [
        ["D0ANN", { kind: "edited", text: "second" }],
        ["D0ANN", { kind: "deleted" }],
        ["D0ANN", { kind: "reaction", reaction: "thumbsup", ofAgent: true }],
        ["C0NEW", { kind: "membership", joined: true }],
      ],
    );
    assert.equal(host.changed[0]?.messageId, ts);
    const address = { channel: "slack", account: "main", conversation: "D0ANN" };
    const soon = AbortSignal.timeout(60_000);
    const states = [];
    for (const reaction of ["eyes", "eyes", null, null]) {
      states.push((await adapter.react?.(address, sent, reaction, soon))?.state);
      states.push(peer.reactions.size);
    }
    assert.deepEqual(states, ["sent", 1, "sent", 1, "sent", 0, "sent", 0]);
  });
});
