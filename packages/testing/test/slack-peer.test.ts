// The fake of Slack is held to what the vendor's own framework expects.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import bolt from "@slack/bolt";
import { startSlackPeer, type SlackPeer } from "../src/peers/slack/index.ts";

const silent = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  setLevel: () => {},
  getLevel: () => bolt.LogLevel.ERROR,
  setName: () => {},
};

interface Replica {
  app: bolt.App;
  stop: () => Promise<void>;
}

function replicaOf(peer: SlackPeer): Replica {
  const clientOptions = { slackApiUrl: `${peer.url}/api/`, retryConfig: { retries: 0 }, rejectRateLimitedCalls: true };
  const receiver = new bolt.SocketModeReceiver({
    appToken: peer.tokens.app,
    logger: silent,
    // Also the pause before it reconnects.
    clientPingTimeout: 300,
    installerOptions: { clientOptions },
  });
  const app = new bolt.App({ token: peer.tokens.bot, receiver, logger: silent, clientOptions });
  const stop = async () => {
    // The client leaves a timer of 30 s behind, which would keep the process alive.
    const { websocket } = receiver.client as unknown as { websocket?: object };
    const unref = (timer: NodeJS.Timeout) => void timer.unref();
    if (websocket !== undefined) Object.defineProperty(websocket, "closeHandshakeTimeout", { set: unref });
    await app.stop();
  };
  return { app, stop };
}

/** The error code of a refused call. */
async function errorOf(call: Promise<unknown>): Promise<string> {
  const error = (await call.then(
    () => ({}),
    (reason: unknown) => reason,
  )) as { data?: { error?: string }; code?: string };
  return error.data?.error ?? error.code ?? "";
}

test("each event reaches one of two Bolt replicas, which answer it", async () => {
  await using peer = await startSlackPeer();
  const heard: string[] = [];
  const replicas = ["one", "two"].map((name) => {
    const replica = replicaOf(peer);
    replica.app.message(async ({ message, say }) => {
      heard.push(name);
      await say({ text: `You said: ${"text" in message ? (message.text ?? "") : ""}`, thread_ts: message.ts });
    });
    return replica;
  });
  await Promise.all(replicas.map(({ app }) => app.start()));
  await peer.untilConnected(2);
  for (let index = 0; index < 6; index += 1) peer.say(`hello ${index}`, { channel: "C0GENERAL" });
  await peer.untilSent(6);
  assert.deepEqual(
    peer.sent.map(({ text }) => text).toSorted(),
    Array.from({ length: 6 }, (_, index) => `You said: hello ${index}`),
  );
  assert.deepEqual([...new Set(heard)].toSorted(), ["one", "two"]);
  await peer.until("all acknowledgements", () =>
    peer.deliveries.every(({ acknowledgements }) => acknowledgements === 1) ? true : null,
  );
  assert.equal(peer.duplicates, 0);
  assert.equal(peer.strayAcknowledgements, 0);
  await Promise.all(replicas.map(({ stop }) => stop()));
});

test("an event that a replica does not acknowledge is delivered to the other one", async () => {
  await using peer = await startSlackPeer({ retryDelaysMs: [0, 50, 100] });
  const attempts: unknown[] = [];
  const { app: healthy, stop } = replicaOf(peer);
  healthy.use(async ({ context, next }) => {
    attempts.push(context.retryNum);
    await next();
  });
  healthy.message(async ({ say }) => void (await say("heard")));
  await healthy.start();
  // A replica that hangs: it receives and never acknowledges.
  const hung = new WebSocket(await socketUrl(peer));
  await once(hung, "open");
  await peer.untilConnected(2);
  peer.say("one");
  peer.say("two");
  await peer.untilSent(2);
  assert.ok(attempts.includes(1), "one of the two was a redelivery");
  await peer.until("all acknowledgements", () =>
    peer.deliveries.every(({ acknowledgements }) => acknowledgements > 0) ? true : null,
  );
  hung.close();
  await stop();
});

async function socketUrl(peer: SlackPeer): Promise<string> {
  const response = await fetch(`${peer.url}/api/apps.connections.open`, {
    method: "POST",
    headers: { authorization: `Bearer ${peer.tokens.app}` },
  });
  const { url } = (await response.json()) as { url: string };
  return url;
}

test("Bolt reconnects when the service announces that it closes the connection", async () => {
  await using peer = await startSlackPeer();
  const { app, stop } = replicaOf(peer);
  app.message(async ({ say }) => void (await say("heard")));
  await app.start();
  await peer.untilConnected();
  peer.announce("refresh_requested");
  await peer.until("a second connection", () => (peer.sockets.opened === 2 ? true : null));
  await peer.untilConnected();
  peer.say("after");
  await peer.untilSent(1);
  await stop();
});

test("Bolt handles buttons, slash commands, mentions, reactions and edits", async () => {
  await using peer = await startSlackPeer();
  const { app, stop } = replicaOf(peer);
  const seen: string[] = [];
  app.action("approve", async ({ ack, body, action, client }) => {
    await ack();
    seen.push(`${body.user.id} ${"value" in action ? (action.value ?? "") : ""}`);
    const { channel, message } = body as { channel?: { id: string }; message?: { ts: string } };
    await client.chat.update({ channel: channel?.id ?? "", ts: message?.ts ?? "", text: "decided" });
  });
  app.command("/parley", async ({ command, ack }) => {
    await ack({ text: `ran ${command.text}` });
  });
  app.event("app_mention", async ({ event }) => void seen.push(`mention ${event.text}`));
  app.event("reaction_added", async ({ event }) => void seen.push(`reaction ${event.reaction} ${event.item_user}`));
  app.event("message", async ({ event }) => {
    if (event.subtype === "message_changed" && "text" in event.message) seen.push(`edit ${event.message.text ?? ""}`);
  });
  await app.start();
  const { ts } = await app.client.chat.postMessage({
    channel: "D0ANN",
    text: "Allow?",
    blocks: [
      { type: "markdown", text: "**Allow?**" },
      {
        type: "actions",
        elements: [{ type: "button", action_id: "approve", value: "AB12", text: { type: "plain_text", text: "Yes" } }],
      },
    ],
  });
  peer.press(ts ?? "", "Yes");
  const command = peer.command("/parley", "status");
  const { ts: written } = peer.say(`<@${peer.bot.userId}> hi`, { channel: "C0GENERAL" });
  peer.react("D0ANN", ts ?? "", "thumbsup");
  peer.edit(written, "changed");
  await peer.until("all of them", () => (seen.length === 4 && peer.sent[0]?.text === "decided" ? true : null));
  assert.deepEqual(seen.toSorted(), [
    "U0ANN AB12",
    "edit changed",
    `mention <@${peer.bot.userId}> hi`,
    `reaction thumbsup ${peer.bot.userId}`,
  ]);
  await peer.until("the command", () => (command.acknowledgements === 1 ? true : null));
  assert.deepEqual(command.answer, { text: "ran status" });
  assert.deepEqual(peer.sent[0]?.buttons, []);
  await stop();
});

test("the vendor's client reads limits, errors and broken connections as what they are", async () => {
  await using peer = await startSlackPeer({ postRate: { burst: 3, everyMs: 60_000 } });
  const { client } = replicaOf(peer).app;
  const post = (text: string, channel = "C0GENERAL") => client.chat.postMessage({ channel, text });
  assert.equal((await client.auth.test()).user_id, peer.bot.userId);
  for (const text of ["a", "b", "c"]) await post(text);
  const limited = (await post("d").catch((error: unknown) => error)) as { code: string; retryAfter: number };
  assert.equal(limited.code, bolt.webApi.ErrorCode.RateLimitedError);
  assert.ok(limited.retryAfter > 30 && limited.retryAfter <= 60);
  assert.equal(peer.sent.length, 3);

  peer.closeChannel("C0ARCHIVED", "is_archived");
  assert.equal(await errorOf(post("x", "C0ARCHIVED")), "is_archived");
  assert.equal(await errorOf(post("x", "nowhere")), "channel_not_found");
  assert.equal(await errorOf(post(" ", "C0OTHER")), "no_text");
  const blocks = [{ type: "section" as const, text: { type: "mrkdwn" as const, text: "x".repeat(3_001) } }];
  assert.equal(await errorOf(client.chat.postMessage({ channel: "C0THIRD", text: "x", blocks })), "invalid_blocks");
  const markdown_text = "x".repeat(12_001);
  assert.equal(await errorOf(client.chat.postMessage({ channel: "C0FOURTH", markdown_text })), "msg_too_long");
  assert.equal(await errorOf(client.chat.update({ channel: "C0GENERAL", ts: "1.2", text: "x" })), "message_not_found");
  const { ts } = await post("fifth", "C0FIFTH");
  await client.reactions.add({ channel: "C0FIFTH", timestamp: ts ?? "", name: "eyes" });
  assert.equal(
    await errorOf(client.reactions.add({ channel: "C0FIFTH", timestamp: ts ?? "", name: "eyes" })),
    "already_reacted",
  );

  peer.fail("chat.postMessage", { kind: "reset_after_commit" });
  assert.equal(await errorOf(post("cut", "C0SIXTH")), bolt.webApi.ErrorCode.RequestError);
  assert.equal(peer.sent.at(-1)?.text, "cut", "the message that was cut off did arrive");
  peer.fail("chat.postMessage", { kind: "bad_gateway" });
  assert.equal(await errorOf(post("x", "C0SEVENTH")), bolt.webApi.ErrorCode.HTTPError);
  peer.missingScopes.add("reactions:write");
  const unscoped = client.reactions.add({ channel: "C0FIFTH", timestamp: ts ?? "", name: "tada" });
  const { data } = (await unscoped.catch((error: unknown) => error)) as { data: Record<string, unknown> };
  assert.deepEqual([data["error"], data["needed"]], ["missing_scope", "reactions:write"]);
  peer.revoke(peer.tokens.bot);
  assert.equal(await errorOf(client.auth.test()), "invalid_auth");
});

test("the vendor's client uploads files, and the bytes arrive", async () => {
  await using peer = await startSlackPeer();
  const { client } = replicaOf(peer).app;
  const content = Buffer.from("a file\u0000with bytes");
  await client.files.uploadV2({
    channel_id: "C0GENERAL",
    initial_comment: "see *this*",
    file: content,
    filename: "a.bin",
  });
  const [message] = peer.sent;
  assert.equal(message?.text, "see this");
  assert.deepEqual(
    message?.files.map((file) => [file.name, file.content.equals(content)]),
    [["a.bin", true]],
  );
});

test("Bolt accepts the signed requests of the Events API and their retries", async () => {
  await using peer = await startSlackPeer({ ackTimeoutMs: 500 });
  const receiver = new bolt.HTTPReceiver({ signingSecret: peer.signingSecret, logger: silent, port: 0 });
  const app = new bolt.App({
    token: peer.tokens.bot,
    receiver,
    logger: silent,
    clientOptions: { slackApiUrl: `${peer.url}/api/` },
  });
  const heard: string[] = [];
  let failures = 1;
  app.message(async ({ message, context }) => {
    heard.push(`${"text" in message ? (message.text ?? "") : ""} ${context.retryNum ?? 0}`);
  });
  app.action("approve", async ({ ack }) => ack());
  const server = (await app.start(0)) as unknown as Server;
  // The first request is refused before Bolt sees it, as by a proxy.
  const [handle] = server.listeners("request") as ((...given: unknown[]) => void)[];
  server.removeAllListeners("request");
  server.on("request", (request, response) => {
    failures -= 1;
    if (failures === 0) response.writeHead(503).end();
    else handle?.(request, response);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/slack/events`;
  failures = 0;
  assert.equal(await peer.verifyUrl(url), true);
  failures = 1;
  peer.setRequestUrl(url);
  const { deliveries } = peer.say("hello");
  await peer.until("the acknowledgement", () => (deliveries[0]?.acknowledgements === 1 ? true : null));
  assert.deepEqual(heard, ["hello 1"]);
  assert.equal(deliveries[0]?.sends, 2);
  const forged = JSON.stringify({ type: "event_callback", event: { type: "message" } });
  const headers = { "content-type": "application/json", ...peer.sign(`${forged} `) };
  const refused = await fetch(url, { method: "POST", headers, body: forged });
  assert.equal(refused.status, 401);
  await app.stop();
});
