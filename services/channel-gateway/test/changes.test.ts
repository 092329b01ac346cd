// Edits, deletions and membership: what the agent reads after a person changed a message, on a real store and a strict Telegram peer.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { isDeepStrictEqual } from "node:util";
import { Client } from "pg";
import { parseSettings } from "@parley/chassis";
import { store } from "@parley/contracts";
import { startSignalPeer, startTelegramPeer, type TelegramPeer } from "@parley/testing";
import { startGatewayStack, type GatewayStack } from "./support/stack.ts";

let stack: GatewayStack;
/** Resolved by a test to end the turn of its first message. */
const turns = new Map<string, PromiseWithResolvers<void>>();

/** The text that a message of the peer has, as an edit of it. */
function edited(peer: TelegramPeer, messageId: number, text: string, from = 42): number {
  const person = { id: from, is_bot: false, first_name: `User ${from}` };
  return peer.push("edited_message", {
    message_id: messageId,
    date: 1_790_000_000,
    edit_date: 1_790_000_100,
    from: person,
    chat: { id: 42, type: "private", first_name: "User 42" },
    text,
  });
}

async function gatewayFor(peer: TelegramPeer, account: string, more = ""): Promise<void> {
  const settings = `
[session]
policy = "per_conversation"
[channels.telegram.${account}]
token_env = "PARLEY_CHANNEL_BOT"
api_root = "${peer.url}"
owners = ["42"]
${more}`;
  await stack.gateway({
    name: account,
    config: {
      settings: parseSettings(settings, "test"),
      channelSecrets: new Map([["PARLEY_CHANNEL_BOT", peer.token]]),
    },
  });
}

/** The texts to send that match a pattern and are not for one conversation. */
async function textsLike(pattern: string, notFor: string): Promise<string[]> {
  const client = new Client({ connectionString: stack.stack.postgres.ownerUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ body: string }>(
      "SELECT body FROM parley.outbox WHERE body LIKE $1 AND conversation <> $2",
      [pattern, notFor],
    );
    return rows.map(({ body }) => JSON.parse(body) as string);
  } finally {
    await client.end();
  }
}

/** Starts a turn that runs until the returned function is called. */
async function working(peer: TelegramPeer, account: string): Promise<() => void> {
  const turn = Promise.withResolvers<void>();
  turns.set(account, turn);
  peer.say(`${account}: work`, { fields: { message_id: 100 } });
  await stack.agent.hears(account, `${account}: work`);
  return () => turn.resolve();
}

describe("changes of messages", { concurrency: true }, () => {
  before(async () => {
    stack = await startGatewayStack();
    stack.agent.script = async (said) => {
      const [account = "", word] = said.split(": ");
      if (word === "work") await turns.get(account)?.promise;
      return { deltas: [`answer to ${said}`] };
    };
  });
  after(() => stack[Symbol.asyncDispose]());

  test("an edit replaces the text of a waiting message", async () => {
    await using peer = await startTelegramPeer();
    await gatewayFor(peer, "waiting");
    const finish = await working(peer, "waiting");
    peer.say("waiting: firts", { fields: { message_id: 101 } });
    edited(peer, 101, "waiting: first");
    edited(peer, 101, "not mine", 43);
    await peer.until("everything to be confirmed", () => (peer.pending === 0 ? true : null));
    finish();
    await peer.untilSent(2);
    assert.deepEqual(stack.agent.heardOn("waiting"), ["waiting: work", "waiting: first"]);
  });

  test("an edit of the message that the agent works on reaches it as a new message", async () => {
    await using peer = await startTelegramPeer();
    await gatewayFor(peer, "running");
    const finish = await working(peer, "running");
    edited(peer, 100, "running: work");
    edited(peer, 100, "/stop");
    await peer.until("everything to be confirmed", () => (peer.pending === 0 ? true : null));
    finish();
    await peer.untilSent(2);
    assert.deepEqual(stack.agent.heardOn("running"), [
      "running: work",
      "[I edited the quoted message. It now says:]\n/stop",
    ]);
    const parts = stack.agent.heardParts.find(([first]) => first?.type === "quote" && first.text.startsWith("running"));
    assert.deepEqual(parts?.[0], { type: "quote", text: "running: work", ofSender: true });
  });

  test("an edit of an answered message reaches the agent only when the account asks for it", async () => {
    for (const [account, edits, heard] of [
      ["default", "", 2],
      ["always", 'edits = "always"', 3],
      ["never", 'edits = "queued"', 2],
    ] as const) {
      await using peer = await startTelegramPeer();
      await gatewayFor(peer, account, edits);
      peer.say(`${account}: one`, { fields: { message_id: 100 } });
      await peer.untilSent(1);
      edited(peer, 100, `${account}: two`);
      await peer.until("everything to be confirmed", () => (peer.pending === 0 ? true : null));
      // A message that arrives before the turn of the edit joins it.
      await peer.untilSent(heard - 1);
      peer.say(`${account}: three`);
      await peer.untilSent(heard);
      assert.equal(stack.agent.heardOn(account).length, heard, account);
    }
  });

  test("acknowledges a change of membership", async () => {
    await using peer = await startTelegramPeer();
    await gatewayFor(peer, "member");
    await peer.untilCalls("getUpdates", 1);
    const update = peer.push("my_chat_member", {
      chat: { id: -5, type: "supergroup", title: "Team" },
      from: { id: 43, is_bot: false, first_name: "Bob" },
      date: 1_790_000_000,
      old_chat_member: { user: peer.bot, status: "left" },
      new_chat_member: { user: peer.bot, status: "member" },
    });
    await peer.until("it to be confirmed", () => (peer.pending === 0 ? true : null));
    assert.equal(peer.deliveries(update), 1);
    assert.deepEqual(stack.agent.heardOn("member"), []);
  });

  test("ends what waits in a group and tells the owner when the agent is removed from it", async () => {
    await using peer = await startTelegramPeer();
    await gatewayFor(peer, "removed", 'groups = ["-5", "-6"]\nrequire_mention = false');
    const turn = Promise.withResolvers<void>();
    turns.set("removed", turn);
    peer.say("removed: directly");
    await peer.untilSent(1);
    peer.say("removed: work", { chat: -5 });
    await stack.agent.hears("removed", "removed: work");
    peer.say("removed: waiting", { chat: -5 });
    peer.push("my_chat_member", {
      chat: { id: -5, type: "supergroup", title: "Team" },
      from: { id: 43, is_bot: false, first_name: "Bob" },
      date: 1_790_000_000,
      old_chat_member: { user: peer.bot, status: "member" },
      new_chat_member: { user: peer.bot, status: "kicked" },
    });
    await pollUntil(async () => stack.agent.cancelled.length === 1, "the turn of the group to be cancelled");
    // The owner of any account here may have written last.
    assert.deepEqual(await textsLike("%was removed from%", "-5"), [
      "I was removed from the group -5 on telegram:removed by Bob (43). Messages and answers that waited there are cancelled.",
    ]);
    turn.resolve();
    peer.say("removed: after");
    await stack.agent.hears("removed", "removed: after");
    await stack.agent.idle();
    assert.ok(!stack.agent.heardOn("removed").includes("removed: waiting"));
  });

  test("being added to a listed group reaches the agent when the account asks for it", async () => {
    await using peer = await startTelegramPeer();
    await gatewayFor(peer, "added", 'groups = ["-5"]\nevents = ["added"]');
    await peer.untilCalls("getUpdates", 1);
    for (const group of [-6, -5]) {
      peer.push("my_chat_member", {
        chat: { id: group, type: "supergroup", title: "Team" },
        from: { id: 43, is_bot: false, first_name: "Bob" },
        date: 1_790_000_000,
        old_chat_member: { user: peer.bot, status: "left" },
        new_chat_member: { user: peer.bot, status: "member" },
      });
    }
    const [answer] = await peer.untilSent(1);
    assert.equal(Number(answer?.chatId), -5);
    assert.deepEqual(stack.agent.heardOn("added"), ["[I added you to this group.]"]);
  });

  test("a reaction on Telegram reaches the agent when the agent wrote the message", async () => {
    await using peer = await startTelegramPeer();
    await gatewayFor(peer, "telegram", 'events = ["reaction"]');
    peer.say("telegram: hello", { fields: { message_id: 100 } });
    const [answer] = await peer.untilSent(1);
    const messageId = answer?.messageId ?? 0;
    const place = { channel: "telegram", account: "telegram", conversation: "42", messageId: String(messageId) };
    const gatewayBus = await stack.stack.bus("channel-gateway");
    // The message can be found once its outcome is stored.
    await pollUntil(
      async () => (await gatewayBus.request(store.outboxFind, place)).text !== null,
      "the stored outcome",
    );
    const react = (to: number, before: string[], now: string[]) => {
      const user = { id: 42, is_bot: false, first_name: "User 42" };
      const of = (emojis: string[]) => emojis.map((emoji) => ({ type: "emoji", emoji }));
      const chat = { id: 42, type: "private", first_name: "User 42" };
      const reactions = { old_reaction: of(before), new_reaction: of(now) };
      peer.push("message_reaction", { chat, user, message_id: to, date: 1_790_000_000, ...reactions });
    };
    react(100, [], ["👎"]);
    react(messageId, ["👎"], []);
    react(messageId, ["👎"], ["👎", "🎉"]);
    await peer.untilSent(2);
    const heard = ["telegram: hello", "[I reacted with 🎉 to the quoted message.]"];
    assert.deepEqual(stack.agent.heardOn("telegram"), heard);
  });

  test("a reaction to an answer reaches the agent when the account asks for it", async () => {
    await using peer = await startSignalPeer();
    const settings = `
[channels.signal.reactions]
number = "${peer.number}"
daemon_url = "${peer.url}"
owners = ["${peer.ann.uuid}"]
events = ["reaction"]`;
    await stack.gateway({ name: "reactions", config: { settings: parseSettings(settings, "test") } });
    peer.say("reactions: hello");
    const [answer] = await peer.untilSent(1);
    const messageId = String(answer?.timestamp);
    const place = { channel: "signal", account: "reactions", conversation: peer.ann.uuid, messageId };
    // The message can be found once its outcome is stored.
    const gatewayBus = await stack.stack.bus("channel-gateway");
    await pollUntil(
      async () => (await gatewayBus.request(store.outboxFind, place)).text !== null,
      "the stored outcome",
    );
    const react = (emoji: string, isRemove: boolean, from = peer.ann) => {
      const target = { targetAuthorNumber: peer.number, targetSentTimestamp: answer?.timestamp };
      peer.say("", { from, fields: { message: null, reaction: { emoji, isRemove, ...target } } });
    };
    react("👎", true);
    react("👎", false, peer.ben);
    react("👍", false);
    await stack.agent.hears("reactions", "[I reacted with 👍 to the quoted message.]");
    assert.equal(stack.agent.heardOn("reactions").length, 2);
    const quote = { type: "quote", text: "answer to reactions: hello", ofAgent: true };
    assert.ok(stack.agent.heardParts.some(([first]) => isDeepStrictEqual(first, quote)));
    await peer.untilSent(2);
    assert.ok(peer.sent.every(({ to }) => to === peer.ann.uuid));
  });
});
