import assert from "node:assert/strict";
import { test } from "node:test";
import { telegramChannel, type TelegramAccount } from "@parley/contracts";
import { startTelegramPeer, type TelegramPeer } from "@parley/testing";
import { RateLimitedError, type ChannelAdapter, type OutboundPart, type SendOutcome } from "../src/channels/channel.ts";
import { createTelegram } from "../src/channels/telegram/index.ts";
import { firstPart, sendAnswer } from "./support/parts.ts";

const token = "7000001:AAStandInTokenOfAStandInBotForTests";

function adapterFor(peer: Pick<TelegramPeer, "url">, mode: TelegramAccount["mode"] = "poll"): ChannelAdapter {
  const settings: TelegramAccount = {
    owners: [],
    allow_from: [],
    dm_policy: "open",
    groups: [],
    require_mention: true,
    token_env: "PARLEY_CHANNEL_TELEGRAM",
    mode,
    api_root: peer.url,
  };
  return createTelegram("main", settings, { token_env: token, webhook_secret_env: "s3cret" });
}

const addressOf = (more: Partial<OutboundPart["address"]> = {}) => ({
  channel: "telegram",
  account: "main",
  conversation: "42",
  ...more,
});

function answer(text: string, more: Partial<OutboundPart["address"]> = {}): OutboundPart {
  return firstPart(telegramChannel.capabilities.text, addressOf(more), text);
}

const soon = (): AbortSignal => AbortSignal.timeout(60_000);

function reasonOf(outcome: SendOutcome): string {
  return "reason" in outcome ? outcome.reason : "";
}

test("sends an answer with its markup, in its topic, as a reply", async () => {
  await using peer = await startTelegramPeer();
  const message = answer("**Hi** `there`", { conversation: "-1001:5", replyToId: "9" });
  const outcome = await adapterFor(peer).send(message, soon());
  const [sent] = peer.sent;
  assert.deepEqual(outcome, { state: "sent", providerMessageId: String(sent?.messageId) });
  assert.deepEqual(
    { ...sent, messageId: 0 },
    {
      messageId: 0,
      chatId: -1001,
      threadId: 5,
      replyToId: 9,
      text: "Hi there",
      entities: [
        { type: "bold", offset: 0, length: 2 },
        { type: "code", offset: 3, length: 5 },
      ],
      parseMode: "HTML",
      buttons: [],
    },
  );
});

// design: 001.20d
test("sends an answer of 9,000 characters in order, with only its first part as a reply", async () => {
  await using peer = await startTelegramPeer();
  const lines = Array.from({ length: 300 }, (_, line) => `${line} **bold** & <some> text of a line`);
  assert.ok(lines.join("\n").length > 9_000);
  const outcomes = await sendAnswer(adapterFor(peer), addressOf({ replyToId: "3" }), lines.join("\n"), soon());
  assert.deepEqual(
    outcomes.map(({ state }) => state),
    ["sent", "sent", "sent"],
  );
  assert.deepEqual(
    peer.sent.map((message) => message.replyToId),
    [3, null, null],
  );
  const shown = peer.sent.map((message) => message.text).join("\n");
  assert.equal(shown, lines.join("\n").replaceAll("**", ""));
  for (const { text } of peer.sent) assert.ok(text.length <= 4_096);
  assert.ok(
    peer.sent.slice(0, 2).every(({ text }) => text.length > 4_000),
    "the messages are full",
  );
});

test("sends plain text when Telegram refuses the markup", async () => {
  await using peer = await startTelegramPeer();
  peer.fail("sendMessage", {
    kind: "refuse",
    status: 400,
    description: "Bad Request: can't parse entities: Unsupported start tag",
  });
  assert.equal((await adapterFor(peer).send(answer("**Hi** <there>"), soon())).state, "sent");
  assert.deepEqual(
    peer.sent.map(({ text, parseMode }) => ({ text, parseMode })),
    [{ text: "Hi <there>", parseMode: null }],
  );
});

test("reports retry when a message certainly did not arrive", async () => {
  await using peer = await startTelegramPeer();
  const adapter = adapterFor(peer);
  peer.fail("sendMessage", { kind: "too_many", retryAfterSeconds: 7 });
  const flood = await adapter.send(answer("a"), soon());
  assert.deepEqual({ ...flood, reason: "" }, { state: "retry", afterMs: 7_000, reason: "", scope: "account" });
  peer.fail("sendMessage", { kind: "server_error" });
  assert.equal((await adapter.send(answer("a"), soon())).state, "retry");
  peer.fail("sendMessage", { kind: "bad_gateway" });
  assert.equal((await adapter.send(answer("a"), soon())).state, "retry");
  assert.deepEqual(peer.sent, []);
  assert.equal((await adapter.send(answer("a"), soon())).state, "sent");
});

const picture = { name: "a.jpg", mediaType: "image/jpeg", content: Buffer.from("ffd8ffe0", "hex") };
const withFile = (file: OutboundPart["file"]): OutboundPart => ({
  ...answer("", { conversation: "-1001:5", replyToId: "9" }),
  ...(file === undefined ? {} : { file }),
});

test("sends a picture as a photo, and as a document when Telegram cannot show it", async () => {
  await using peer = await startTelegramPeer();
  const adapter = adapterFor(peer);
  assert.equal((await adapter.send(withFile(picture), soon())).state, "sent");
  peer.fail("sendPhoto", { kind: "refuse", status: 400, description: "Bad Request: PHOTO_INVALID_DIMENSIONS" });
  await adapter.send(withFile(picture), soon());
  const large = { ...picture, content: Buffer.alloc(10 * 1024 * 1024 + 1, 1) };
  await adapter.send(withFile(large), soon());
  await adapter.send(
    withFile({ name: 'q"\r\n世.zip', mediaType: "application/zip", content: Buffer.from("PK") }),
    soon(),
  );
  assert.deepEqual(
    peer.sent.map(({ chatId, threadId, replyToId, file }) => [chatId, threadId, replyToId, file?.kind]),
    [
      [-1001, 5, 9, "photo"],
      [-1001, 5, 9, "document"],
      [-1001, 5, 9, "document"],
      [-1001, 5, 9, "document"],
    ],
  );
  assert.deepEqual(peer.sent[3]?.file?.content, Buffer.from("PK"));
});

test("sends speech as voice, music as audio, and a document when voice is forbidden", async () => {
  await using peer = await startTelegramPeer();
  const adapter = adapterFor(peer);
  const sound = (mediaType: string) => withFile({ name: "voice.ogg", mediaType, content: Buffer.from("OggS") });
  for (const mediaType of ["audio/ogg", "application/ogg", "audio/mpeg", "audio/flac"]) {
    assert.equal((await adapter.send(sound(mediaType), soon())).state, "sent");
  }
  peer.fail("sendVoice", { kind: "refuse", status: 400, description: "Bad Request: VOICE_MESSAGES_FORBIDDEN" });
  assert.equal((await adapter.send(sound("audio/ogg"), soon())).state, "sent");
  assert.deepEqual(
    peer.sent.map(({ file }) => file?.kind),
    ["voice", "voice", "audio", "document", "document"],
  );
});

test("reports retry, unknown or dropped for files as for texts", async () => {
  await using peer = await startTelegramPeer();
  const adapter = adapterFor(peer);
  peer.fail("sendPhoto", { kind: "too_many", retryAfterSeconds: 3 });
  assert.deepEqual(
    { ...(await adapter.send(withFile(picture), soon())), reason: "" },
    {
      state: "retry",
      afterMs: 3_000,
      reason: "",
      scope: "account",
    },
  );
  peer.fail("sendPhoto", { kind: "reset_after_commit" });
  assert.equal((await adapter.send(withFile(picture), soon())).state, "unknown");
  peer.block(-1001);
  assert.equal((await adapter.send(withFile(picture), soon())).state, "dropped");
  const stopped = AbortSignal.abort(new Error("cancelled"));
  assert.equal((await adapter.send(withFile(picture), stopped)).state, "retry");
});

test("reports retry when the platform is unreachable", async () => {
  const peer = await startTelegramPeer();
  await peer.close();
  assert.equal((await adapterFor(peer).send(answer("a"), soon())).state, "retry");
});

test("reports unknown when a message may have arrived", async () => {
  await using peer = await startTelegramPeer();
  const adapter = adapterFor(peer);
  peer.fail("sendMessage", { kind: "reset_after_commit" });
  assert.equal((await adapter.send(answer("a"), soon())).state, "unknown");
  peer.fail("sendMessage", { kind: "hang_after_commit" });
  const impatient = new AbortController();
  void peer.untilSent(2).then(() => impatient.abort());
  assert.equal((await adapter.send(answer("b"), impatient.signal)).state, "unknown");
  assert.deepEqual(
    peer.sent.map(({ text }) => text),
    ["a", "b"],
  );
  assert.equal((await adapter.send(answer("c"), AbortSignal.abort())).state, "retry", "never sent");
});

test("reports dropped when a message can never arrive", async () => {
  await using peer = await startTelegramPeer();
  const adapter = adapterFor(peer);
  peer.block(42);
  peer.remove(43);
  assert.equal((await adapter.send(answer("a"), soon())).state, "dropped");
  assert.equal((await adapter.send(answer("a", { conversation: "43" }), soon())).state, "dropped");
  assert.equal((await adapter.send(answer("a", { conversation: "nonsense" }), soon())).state, "dropped");
});

test("keeps a message while the bot lacks a right in the group", async () => {
  await using peer = await startTelegramPeer();
  const description = "Bad Request: not enough rights to send text messages to the chat";
  peer.fail("sendMessage", { kind: "refuse", status: 400, description });
  const outcome = await adapterFor(peer).send(answer("a"), soon());
  assert.deepEqual(outcome, { state: "retry", afterMs: 60_000, reason: description });
});

// design: 001.20b
test("shows the typing indicator and ignores its failure", async () => {
  await using peer = await startTelegramPeer();
  const adapter = adapterFor(peer);
  await adapter.typing?.(answer("").address);
  peer.block(42);
  await adapter.typing?.(answer("").address);
  const calls = await peer.untilCalls("sendChatAction", 2);
  assert.deepEqual(
    calls.map((call) => call.status),
    [200, 403],
  );
});

test("rejects with the pause when Telegram limits the typing indicator", async () => {
  await using peer = await startTelegramPeer();
  peer.fail("sendChatAction", { kind: "too_many", retryAfterSeconds: 2 });
  await assert.rejects(adapterFor(peer).typing?.(answer("").address) ?? Promise.resolve(), new RateLimitedError(2_000));
});

test("never reveals the token in a reason", async () => {
  const reasons: string[] = [];
  for (const url of ["http://127.0.0.1:1", "http://no-such-host.invalid", "http://[::1]:1/x"]) {
    reasons.push(reasonOf(await adapterFor({ url }).send(answer("a"), soon())));
  }
  await using peer = await startTelegramPeer();
  peer.fail("sendMessage", { kind: "refuse", status: 400, description: `Bad Request: /bot${token}/sendMessage` });
  reasons.push(reasonOf(await adapterFor(peer).send(answer("a"), soon())));
  assert.equal(reasons.filter((reason) => reason !== "" && !reason.includes("AAStandIn")).length, 4);
});
