// Unmentioned messages of groups as context of the next one that mentions the agent, on a real store.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { parseSettings } from "@parley/chassis";
import { store, type Part, type PeoplePolicy } from "@parley/contracts";
import { startTelegramPeer } from "@parley/testing";
import { pollUntil } from "@parley/testing/until";
import { Platform, type ReceivedText } from "./support/platform.ts";
import { startGatewayStack, type GatewayStack, type Replica } from "./support/stack.ts";

let stack: GatewayStack;

async function start(platform: Platform, more: Partial<PeoplePolicy> = {}, name = "one"): Promise<Replica> {
  const people = { owners: ["boss"], groups: ["#team"], group_context: true, ...more };
  return stack.gateway({
    name,
    config: { settings: parseSettings('[session]\npolicy = "per_conversation"', "test") },
    overrides: { accounts: [platform.account(people, name)] },
  });
}

const inGroup = (from: string, text: string, more: Partial<ReceivedText> = {}): ReceivedText => ({
  conversation: "#team",
  from,
  text,
  direct: false,
  ...more,
});
const mention = (from: string, text: string, more: Partial<ReceivedText> = {}) =>
  inGroup(from, text, { addressed: true, ...more });

/** The context that the agent received with a message: `author: text` in order, the sender's own lines marked. */
function contextOf(said: string): string[] {
  const parts = stack.agent.heardParts.find((each) => each.some((part) => part.type === "text" && part.text === said));
  assert.ok(parts, `the agent did not receive "${said}"`);
  return parts.flatMap((part: Part) => {
    if (part.type !== "quote") return [];
    assert.equal(part.earlier, true);
    return [`${part.ofSender === true ? "(own) " : ""}${part.author ?? ""}: ${part.text}`];
  });
}

describe("the context of a group", { concurrency: true }, () => {
  before(async () => {
    stack = await startGatewayStack();
  });
  after(() => stack[Symbol.asyncDispose]());

  // design: 004.24
  test("comes once with the next mention, in order, also after another gateway took over", async () => {
    const platform = new Platform("context");
    const first = await start(platform);
    platform.say(inGroup("ann", "the build is red"));
    platform.say(inGroup("boss", "since when?"));
    platform.say(inGroup("ann", "/status"));
    platform.say(mention("boss", "context: one"));
    await platform.until(() => platform.sent.length === 1);
    assert.deepEqual(contextOf("context: one"), [
      "Name of ann: the build is red",
      "(own) Name of boss: since when?",
      "Name of ann: /status",
    ]);
    platform.say(inGroup("ann", "since noon"));
    platform.say({ conversation: "boss", from: "boss", text: "context: private" });
    await platform.until(() => platform.sent.length === 2);
    await start(platform, {}, "two");
    await first.close();
    platform.say(mention("ann", "context: two"));
    await platform.until(() => platform.sent.length === 3);
    platform.say(mention("boss", "context: three"));
    await platform.until(() => platform.sent.length === 4);
    // On a busy machine a lease may expire and be acquired again.
    assert.deepEqual([...new Set(platform.owners)], ["one", "two"]);
    assert.deepEqual(["context: private", "context: two", "context: three"].map(contextOf), [
      [],
      ["(own) Name of ann: since noon"],
      [],
    ]);
  });

  test("belongs to the group or thread it was written in", async () => {
    const platform = new Platform("places");
    await start(platform);
    const topic = { conversation: "#team:5", group: "#team" };
    platform.say(inGroup("ann", "in the group"));
    platform.say(inGroup("ann", "in the topic", topic));
    platform.say(mention("boss", "places: topic", topic));
    await platform.until(() => platform.sent.length === 1);
    platform.say(mention("boss", "places: group"));
    await platform.until(() => platform.sent.length === 2);
    assert.deepEqual(contextOf("places: topic"), ["Name of ann: in the topic"]);
    assert.deepEqual(contextOf("places: group"), ["Name of ann: in the group"]);
  });

  test("contains the messages of the group when a mention opens a thread", async () => {
    const platform = new Platform("threads");
    await start(platform);
    const opening = (id: string) => ({ conversation: `#team/${id}`, group: "#team", opensThread: true as const });
    platform.say(inGroup("ann", "first", opening("1")));
    platform.say(inGroup("ben", "second", opening("2")));
    platform.say(inGroup("ann", "a reply", { conversation: "#team/2", group: "#team" }));
    platform.say(mention("boss", "threads: in one", { conversation: "#team/2", group: "#team" }));
    await platform.until(() => platform.sent.length === 1);
    platform.say(mention("boss", "threads: new", opening("3")));
    await platform.until(() => platform.sent.length === 2);
    // A thread begins with the message that opened it.
    assert.deepEqual(contextOf("threads: in one"), ["Name of ben: second", "Name of ann: a reply"]);
    assert.deepEqual(contextOf("threads: new"), ["Name of ann: first"]);
  });

  test("is dropped by a new session", async () => {
    const platform = new Platform("dropped");
    await start(platform);
    platform.say(inGroup("ann", "before"));
    platform.say(mention("boss", "/new"));
    await platform.until(() => platform.sent.length === 1);
    platform.say(inGroup("ann", "after"));
    platform.say(mention("boss", "dropped: hello"));
    await platform.until(() => platform.sent.length === 2);
    assert.deepEqual(contextOf("dropped: hello"), ["Name of ann: after"]);
  });

  test("contains nothing of blocked people and of groups that are not listed, and only if the account asks", async () => {
    const bus = await stack.stack.bus("channel-gateway");
    const block = (account: string, contactId: string) =>
      bus.request(store.contactSet, { channel: "test", account, contactId, name: null, role: "blocked" });
    const platform = new Platform("rights");
    await block("rights", "mallory");
    await start(platform);
    platform.say(inGroup("mallory", "from a blocked person"));
    platform.say(inGroup("eve", "blocked later"));
    platform.say(inGroup("ann", "not listed", { conversation: "#other" }));
    platform.say(inGroup("ann", "listed"));
    platform.say({ conversation: "boss", from: "boss", text: "rights: read so far" });
    await platform.until(() => platform.sent.length === 1);
    await block("rights", "eve");
    platform.say(mention("boss", "rights: one"));
    await platform.until(() => platform.sent.length === 2);
    assert.deepEqual(contextOf("rights: one"), ["Name of ann: listed"]);

    const silent = new Platform("silent");
    await start(silent, { group_context: false });
    silent.say(inGroup("ann", "not kept"));
    silent.say(mention("boss", "silent: one"));
    await silent.until(() => silent.sent.length === 1);
    assert.deepEqual(contextOf("silent: one"), []);
  });

  test("is at most the last 50 messages and 16 KB", async () => {
    const platform = new Platform("bounds");
    await start(platform);
    for (let n = 1; n <= 60; n++) platform.say(inGroup("ann", `message ${n}`));
    platform.say(mention("boss", "bounds: count"));
    await platform.until(() => platform.sent.length === 1);
    const counted = contextOf("bounds: count");
    assert.deepEqual(
      [counted.length, counted[0], counted.at(-1)],
      [50, "Name of ann: message 11", "Name of ann: message 60"],
    );
    for (let n = 1; n <= 30; n++) platform.say(inGroup("ann", `${n} ${"ä".repeat(2_000)}`));
    platform.say(mention("boss", "bounds: size"));
    await platform.until(() => platform.sent.length === 2);
    const sizes = contextOf("bounds: size").map((line) => Buffer.byteLength(line.slice("Name of ann: ".length)));
    assert.ok(sizes.length >= 8 && sizes.reduce((sum, size) => sum + size, 0) <= 16_384, String(sizes));
  });

  test("follows edits and deletions on the platform, and ends when the agent is removed", async () => {
    await using peer = await startTelegramPeer();
    const settings = `
[channels.telegram.edited]
token_env = "PARLEY_CHANNEL_BOT"
api_root = "${peer.url}"
owners = ["42"]
groups = ["-5"]
group_context = true`;
    await stack.gateway({
      name: "edited",
      config: {
        settings: parseSettings(`[session]\npolicy = "per_conversation"${settings}`, "test"),
        channelSecrets: new Map([["PARLEY_CHANNEL_BOT", peer.token]]),
      },
    });
    const says = (text: string, messageId: number, from = 99) =>
      peer.say(text, { from, chat: -5, fields: { message_id: messageId } });
    says("the frist version", 201);
    says("by somebody else", 202, 98);
    peer.push("edited_message", {
      message_id: 201,
      date: 1_790_000_000,
      edit_date: 1_790_000_100,
      from: { id: 99, is_bot: false, first_name: "User 99" },
      chat: { id: -5, type: "supergroup", title: "Group" },
      text: "the first version",
    });
    await peer.until("everything to be confirmed", () => (peer.pending === 0 ? true : null));
    const bus = await stack.stack.bus("channel-gateway");
    const place = { channel: "telegram", account: "edited", conversation: "-5" };
    // Only the author edits a message; a moderator may delete it.
    const edit = { ...place, messageId: "201", contactId: "98", change: { do: "text" as const, text: "not mine" } };
    await bus.request(store.inboxChange, edit);
    await bus.request(store.inboxChange, { ...place, messageId: "202", contactId: "42", change: { do: "withdraw" } });
    peer.say("@parley_bot edited: one", { from: 42, chat: -5 });
    await peer.untilSent(1);
    const said = await pollUntil(
      async () => stack.agent.heardOn("edited").find((text) => text.includes("edited: one")),
      "the mention",
    );
    assert.deepEqual(contextOf(said), ["User 99: the first version"]);
    says("kept until the removal", 203);
    await peer.until("everything to be confirmed", () => (peer.pending === 0 ? true : null));
    const left = { channel: "telegram", account: "edited", group: "-5", toOwner: { text: "x", expiresInMs: 60_000 } };
    await bus.request(store.groupLeave, { opId: randomUUID(), ...left });
    peer.say("@parley_bot edited: two", { from: 42, chat: -5 });
    const last = await pollUntil(
      async () => stack.agent.heardOn("edited").find((text) => text.includes("edited: two")),
      "the second mention",
    );
    assert.deepEqual(contextOf(last), []);
  });
});
