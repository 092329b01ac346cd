// The fake of Telegram is held to what a client expects that was not written for it.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Bot, GrammyError, HttpError, webhookCallback } from "grammy";

import { readHtml } from "../src/peers/telegram/markup.ts";
import { startTelegramPeer, type TelegramPeer } from "../src/peers/telegram/index.ts";

function botFor(peer: TelegramPeer): Bot {
  return new Bot(peer.token, { client: { apiRoot: peer.url } });
}

async function failure(call: Promise<unknown>): Promise<GrammyError> {
  const error = await call.then(
    () => null,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof GrammyError);
  return error;
}

test("grammy's bot polls and replies", async () => {
  await using peer = await startTelegramPeer();
  const bot = botFor(peer);
  bot.command("ping", (context) => context.reply("<b>pong</b> &amp; more", { parse_mode: "HTML" }));
  bot.on("message:text", (context) =>
    context.reply(`you said ${context.msg.text}`, { reply_parameters: { message_id: context.msg.message_id } }),
  );
  peer.say("/ping");
  peer.say("hello");
  const running = bot.start();
  await peer.untilSent(2);
  await bot.stop();
  await running;
  assert.deepEqual(
    peer.sent.map(({ text, chatId }) => ({ text, chatId })),
    [
      { text: "pong & more", chatId: 42 },
      { text: "you said hello", chatId: 42 },
    ],
  );
  assert.equal(bot.botInfo.username, "parley_bot");
  assert.equal(peer.pending, 0, "stopping confirms what was handled");
});

test("grammy sees an update again until a later offset confirms it", async () => {
  await using peer = await startTelegramPeer();
  const { api } = botFor(peer);
  const first = peer.say("one");
  peer.say("two");
  const ids = async (offset?: number): Promise<number[]> =>
    (await api.getUpdates(offset === undefined ? {} : { offset })).map((update) => update.update_id);
  assert.deepEqual(await ids(), [first, first + 1]);
  assert.deepEqual(await ids(), [first, first + 1]);
  assert.deepEqual(await ids(first + 1), [first + 1]);
  assert.deepEqual(await ids(first), [first + 1], "what was confirmed is forgotten");
  assert.deepEqual(await ids(-1), [first + 1]);
  assert.deepEqual(await ids(first + 2), []);
  assert.equal(peer.deliveries(first), 2);
});

test("a long poll is answered when a message comes, and only kinds that were asked for come", async () => {
  await using peer = await startTelegramPeer();
  const { api } = botFor(peer);
  const waiting = api.getUpdates({ timeout: 30, allowed_updates: ["message"] });
  await peer.untilCalls("getUpdates", 1);
  peer.push("poll", { id: "1" });
  peer.say("hello");
  const updates = await waiting;
  assert.deepEqual(
    updates.map((update) => update.message?.text),
    ["hello"],
  );
});

test("of two grammy bots the one that polled first is stopped by 409", async () => {
  await using peer = await startTelegramPeer();
  const [older, newer] = [botFor(peer), botFor(peer)];
  newer.on("message", () => {});
  const ended = failure(older.start());
  await peer.untilCalls("getUpdates", 1);
  const running = newer.start();
  const error = await ended;
  assert.equal(error.error_code, 409);
  assert.match(error.description, /terminated by other getUpdates/);
  assert.equal(peer.conflicts, 1);
  await newer.stop();
  await running;
});

test("grammy reads 429, 403, 400 and cut connections as what they are", async () => {
  await using peer = await startTelegramPeer();
  const { api } = botFor(peer);
  peer.fail("sendMessage", { kind: "too_many", retryAfterSeconds: 3 });
  const flood = await failure(api.sendMessage(42, "a"));
  assert.equal(flood.error_code, 429);
  assert.equal(flood.parameters.retry_after, 3);
  peer.block(7);
  assert.equal((await failure(api.sendMessage(7, "a"))).error_code, 403);
  assert.match(
    (await failure(api.sendMessage(42, "<b>a", { parse_mode: "HTML" }))).description,
    /can't parse entities/,
  );
  assert.match((await failure(api.sendMessage(42, " "))).description, /text is empty/);
  assert.match((await failure(api.sendMessage(42, "a".repeat(4_097)))).description, /too long/);
  await api.sendMessage(42, `<b>${"a".repeat(4_096)}</b>`, { parse_mode: "HTML" });
  peer.fail("sendMessage", { kind: "reset_after_commit" });
  await assert.rejects(api.sendMessage(42, "b"), HttpError);
  assert.equal(peer.sent.length, 2, "the one that was cut off did arrive");
});

test("an edit that changes nothing is refused as Telegram refuses it", async () => {
  await using peer = await startTelegramPeer();
  const { api } = botFor(peer);
  const message = await api.sendMessage(42, "a");
  await api.editMessageText(42, message.message_id, "b");
  assert.match(
    (await failure(api.editMessageText(42, message.message_id, "b"))).description,
    /message is not modified/,
  );
  assert.equal(await api.sendChatAction(42, "typing"), true);
  assert.equal(peer.sent[0]?.text, "b");
});

test("grammy deletes a message and sets and removes a reaction as with the real service", async () => {
  await using peer = await startTelegramPeer();
  const { api } = botFor(peer);
  const message = await api.sendMessage(42, "a");
  await api.setMessageReaction(42, message.message_id, [{ type: "emoji", emoji: "👀" }]);
  await api.setMessageReaction(42, message.message_id, []);
  assert.deepEqual(
    peer.reactions.map(({ emoji }) => emoji),
    ["👀", null],
  );
  const refused = api.setMessageReaction(42, message.message_id, [{ type: "emoji", emoji: "🏷" as "👀" }]);
  assert.match((await failure(refused)).description, /REACTION_INVALID/);
  await api.deleteMessage(42, message.message_id);
  assert.deepEqual(peer.sent, []);
  assert.match((await failure(api.deleteMessage(42, message.message_id))).description, /message to delete not found/);
});

test("a webhook of grammy's gets each update with the secret, again until it answers 2xx", async () => {
  await using peer = await startTelegramPeer();
  const bot = botFor(peer);
  const seen: string[] = [];
  let failures = 1;
  bot.on("message:text", (context) => {
    failures -= 1;
    if (failures >= 0) throw new Error("not now");
    seen.push(context.msg.text);
  });
  const handle = webhookCallback(bot, "http", { secretToken: "sec-ret" });
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.writeHead(500).end());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await bot.api.setWebhook(`http://127.0.0.1:${port}/`, { secret_token: "sec-ret" });
  assert.equal((await failure(bot.api.getUpdates())).error_code, 409);
  const first = peer.say("one");
  peer.say("two");
  await peer.until("both updates to be taken", () => (peer.pending === 0 ? true : null));
  assert.deepEqual(seen, ["one", "two"]);
  assert.equal(peer.deliveries(first), 2);
  await bot.api.deleteWebhook();
  server.close();
  server.closeAllConnections();
});

test("Telegram's HTML is read as Telegram reads it", () => {
  const refusal = (html: string): string => {
    const markup = readHtml(html);
    return markup.ok ? "" : markup.description;
  };
  assert.match(refusal("<p>a</p>"), /Unsupported start tag "p" at byte offset 0/);
  assert.match(refusal("a</b>"), /Unexpected end tag/);
  assert.match(refusal("<b><i>a</b></i>"), /expected "<\/i>", found "<\/b>"/);
  assert.match(refusal("é <b>a"), /end tag corresponding to start tag "b"/);
  assert.match(refusal("1 < 2"), /Unclosed start tag at byte offset 2/);
  assert.deepEqual(
    readHtml('<pre><code class="language-ts">a&lt;b</code></pre> <a href="http://x/?a&amp;b">😀</a> &copy;'),
    {
      ok: true,
      text: "a<b 😀 &copy;",
      entities: [
        { type: "pre", offset: 0, length: 3, language: "ts" },
        { type: "text_link", offset: 4, length: 2, url: "http://x/?a&b" },
      ],
    },
  );
});

test("grammy's keyboard, press and menu of commands work as with the real service", async () => {
  await using peer = await startTelegramPeer();
  const bot = botFor(peer);
  const keyboard = { inline_keyboard: [[{ text: "Yes", callback_data: "y" }]] };
  const { message_id: messageId } = await bot.api.sendMessage(42, "Sure?", { reply_markup: keyboard });
  await bot.api.setMyCommands([{ command: "help", description: "list" }]);
  assert.deepEqual(peer.commands, [{ command: "help", description: "list" }]);
  bot.on("callback_query:data", async (context) => {
    await context.answerCallbackQuery(`got ${context.callbackQuery.data}`);
    await context.editMessageText("Done");
  });
  const pressed = peer.press(messageId, "Yes");
  const running = bot.start();
  assert.equal(await pressed(), "got y");
  await peer.until("the edit", () => (peer.sent[0]?.text === "Done" ? true : null));
  assert.deepEqual(peer.sent[0]?.buttons, [], "an edit without a keyboard removes it");
  await bot.stop();
  await running;
  const late = await failure(bot.api.answerCallbackQuery("unknown"));
  assert.match(late.description, /query is too old/);
  const long = { inline_keyboard: [[{ text: "Yes", callback_data: "y".repeat(65) }]] };
  assert.match(
    (await failure(bot.api.sendMessage(42, "x", { reply_markup: long }))).description,
    /BUTTON_DATA_INVALID/,
  );
});
