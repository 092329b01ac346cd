// Slack by the Events API: signatures, replays, retries and interactions over HTTP.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startSlackPeer } from "@parley/testing";
import { isSigned } from "../src/channels/slack/events-api.ts";
import { serveSlack, slackAdapter } from "./support/slack.ts";

const events = { mode: "events" as const };
const secret = "0123456789abcdef0123456789abcdef";

test("acknowledges an event only after it is stored, and stores a retry once", async () => {
  await using served = await serveSlack(events, { retryDelaysMs: [0, 20, 40] });
  const { peer, host } = served;
  host.refuseNext(new Error("the store is away"));
  const { deliveries } = peer.say("hello");
  await host.untilAccepted(1);
  const [delivery] = deliveries;
  assert.ok(delivery !== undefined);
  await peer.until("the acknowledgement", () => (delivery.acknowledgements === 1 ? true : null));
  const before = host.attempts;
  assert.equal(await peer.repeat(delivery), null, "a retry is stored or found, never dropped for its header");
  assert.equal(host.attempts, before + 1);
  assert.deepEqual(host.texts, ["hello"]);
});

test("takes presses of buttons and slash commands", async () => {
  await using served = await serveSlack(events);
  const { peer, host, adapter } = served;
  const address = { channel: "slack", account: "main", conversation: "D0ANN" };
  const text = { text: "Allow?", plain: "Allow?", ranges: [] };
  const actions = [{ label: "Allow", input: "/approve AB12C" }];
  await adapter.send({ address, text, actions, idempotencyKey: "k", attempts: 0 }, AbortSignal.timeout(60_000));
  const press = peer.press(peer.sent[0]?.ts ?? "", "Allow");
  const command = peer.command("/parley", "help");
  await host.untilAccepted(1);
  await peer.until("both", () => (press.acknowledgements + command.acknowledgements === 2 ? true : null));
  assert.deepEqual([host.acted[0]?.input, host.texts[0]], ["/approve AB12C", "/help"]);
  assert.equal(command.answer, "", "nothing is shown but the answer itself");
});

test("refuses forged, stale, unsigned and unreadable requests", async () => {
  await using served = await serveSlack(events);
  const { peer, host, url } = served;
  assert.equal(await peer.verifyUrl(url), true);
  const post = async (body: string, headers: Record<string, string>, type = "application/json") =>
    (await fetch(url, { method: "POST", headers: { "content-type": type, ...headers }, body })).status;
  const body = JSON.stringify({
    type: "event_callback",
    event_id: "Ev1",
    event: {
      type: "message",
      channel: "D0ANN",
      channel_type: "im",
      ts: "1700000000.000100",
      user: "U0ANN",
      text: "hi",
    },
  });
  const minutes = (count: number) => Date.now() + count * 60_000;
  assert.equal(await post(body, {}), 401);
  assert.equal(await post(`${body} `, peer.sign(body)), 401);
  assert.equal(await post(body, { ...peer.sign(body), "x-slack-signature": "v0=00" }), 401);
  assert.equal(await post(body, peer.sign(body, minutes(-6))), 401);
  assert.equal(await post(body, peer.sign(body, minutes(6))), 401);
  assert.equal(host.attempts, 0);
  assert.equal(await post("[]", peer.sign("[]")), 400);
  assert.equal(await post("{", peer.sign("{")), 400);
  assert.equal(await post("payload=%7B", peer.sign("payload=%7B"), "application/x-www-form-urlencoded"), 200);
  assert.equal(host.attempts, 0);
  assert.equal(await post(body, peer.sign(body, minutes(-4))), 200);
  assert.equal(await post(body, peer.sign(body)), 200);
  assert.deepEqual(host.texts, ["hi"], "a replayed request is a duplicate");
});

test("checks signatures over the exact bytes", () => {
  const body = Buffer.from('{"a":"ä"}');
  const nowMs = 1_700_000_000_000;
  // Computed with: printf 'v0:1700000000:{"a":"ä"}' | openssl dgst -sha256 -hmac <secret>
  const signature = "v0=1cb0c87c5469336e2c0d54d44afb2350f9644389d4f9c08257c01adaccd94089";
  assert.equal(isSigned(body, "1700000000", signature, secret, nowMs), true);
  assert.equal(isSigned(Buffer.from('{"a":"a"}'), "1700000000", signature, secret, nowMs), false);
  assert.equal(isSigned(body, "1700000001", signature, secret, nowMs), false);
  assert.equal(isSigned(body, "1700000000", signature.toUpperCase(), secret, nowMs), false);
  assert.equal(isSigned(body, "1700000000", signature, `${secret}x`, nowMs), false);
  assert.equal(isSigned(body, "1700000000", signature, secret, nowMs + 300_001), false);
  assert.equal(isSigned(body, "1700000000", signature, secret, nowMs - 300_001), false);
});

test("asks for another delivery while Slack does not say who the app is", async () => {
  await using served = await serveSlack(events, { retryDelaysMs: [0, 20, 40] });
  const { peer, host } = served;
  peer.fail("auth.test", { kind: "server_error" });
  const { deliveries } = peer.say("hello", { channel: "C0GENERAL" });
  await host.untilAccepted(1);
  assert.equal(deliveries[0]?.sends, 2);
});

test("neither connects nor owns a connection, and requires its secrets", async () => {
  await using peer = await startSlackPeer();
  const adapter = slackAdapter(peer, events);
  assert.equal("connect" in adapter, false);
  assert.equal(adapter.ownedConnection, false);
  assert.throws(() => slackAdapter(peer, {}, "xapp-1"), /not a bot token/);
});
