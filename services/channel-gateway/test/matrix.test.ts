// The Matrix adapter against a real homeserver, Synapse.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import {
  Cleanup,
  missingSynapse,
  startFaultyProxy,
  startSynapse,
  startTestCluster,
  type MatrixPerson,
  type Synapse,
} from "@parley/testing";
import { AccountRejectedError, type OutboundPart } from "../src/channels/channel.ts";
import { AnswerParts } from "../src/channels/text/parts.ts";
import { encryptedNotice, noticeType } from "../src/channels/matrix/rooms.ts";
import { MatrixAgent as Agent } from "./support/matrix.ts";

const soon = () => AbortSignal.timeout(60_000);

function textPart(agent: Agent, conversation: string, text: string, more: Partial<OutboundPart> = {}): OutboundPart {
  const part = new AnswerParts(agent.adapter.capabilities.text).at("answer", text, 0);
  const address = { channel: "matrix", account: "main", conversation };
  return { address, text: part?.rendered ?? null, idempotencyKey: `key of ${text}`, attempts: 0, ...more };
}

async function sentId(agent: Agent, part: OutboundPart): Promise<string> {
  const outcome = await agent.adapter.send(part, soon());
  assert.equal(outcome.state, "sent");
  return outcome.state === "sent" ? (outcome.providerMessageId ?? "") : "";
}

const relation = (content: Record<string, unknown>) => content["m.relates_to"] as Record<string, unknown> | undefined;

describe("the Matrix adapter", { skip: await missingSynapse() }, () => {
  let synapse: Synapse;
  let ann: MatrixPerson;
  let bob: MatrixPerson;
  before(async () => {
    synapse = await startSynapse();
    [ann, bob] = [await synapse.person("ann"), await synapse.person("bob")];
  });
  after(() => synapse[Symbol.asyncDispose]());

  test("joins an owner's room and receives messages with their person, room and time", async (t) => {
    t.diagnostic(`Synapse ${synapse.version}`);
    await using agent = await Agent.open(synapse, "receives", { owners: [ann.userId] });
    await ann.call("PUT", `/profile/${ann.userId}/displayname`, { displayname: "Ann" });
    const room = await ann.createRoom({ invite: [agent.userId] });
    await ann.untilJoined(room, agent.userId);
    const id = await ann.say(room, "good morning");
    const [draft] = await agent.host.untilAccepted(1);
    assert.ok(draft);
    const { sentAt = "", ...rest } = draft;
    assert.ok(Math.abs(Date.parse(sentAt) - Date.now()) < 60_000);
    assert.deepEqual(rest, {
      externalId: id,
      conversation: room,
      contact: { id: ann.userId, name: "Ann" },
      direct: true,
      addressed: true,
      text: "good morning",
      replyTo: { channel: "matrix", account: "main", conversation: room },
    });
  });

  test("receives what was written between the invitation and the join", async () => {
    await using agent = await Agent.open(synapse, "early", { owners: [ann.userId] });
    const room = await ann.createRoom();
    await ann.say(room, "not for the agent");
    await agent.disconnect();
    await ann.invite(room, agent.userId);
    for (let count = 0; count < 55; count += 1) await ann.say(room, `early ${count}`);
    await agent.connect();
    const drafts = await agent.host.untilAccepted(55);
    assert.deepEqual(
      drafts.map(({ text }) => text),
      Array.from({ length: 55 }, (_, index) => `early ${index}`),
    );
  });

  test("accepts no invitation of a person who is not in the settings", async () => {
    await using agent = await Agent.open(synapse, "invited", { owners: [ann.userId], dm_policy: "allowlist" });
    const room = await bob.createRoom({ invite: [agent.userId], direct: true });
    await agent.host.untilLogged(/invitation ignored/);
    await agent.direct(ann);
    assert.deepEqual(await bob.members(room), [bob.userId]);
  });

  test("tells mentions, replies and commands in a group from other messages", async () => {
    const room = await ann.createRoom({ invite: [bob.userId] });
    await bob.join(room);
    await using agent = await Agent.open(synapse, "grouped", { groups: [room] });
    await ann.invite(room, agent.userId);
    await ann.untilJoined(room, agent.userId);
    await agent.account.rename("Parley", room);
    const own = await sentId(agent, textPart(agent, room, "an answer"));
    await ann.say(room, "hello all", { "m.mentions": {} });
    // The homeserver copies the new name into its rooms later.
    await ann.say(room, "Parley: do it", { "m.mentions": { user_ids: [agent.userId] } });
    await bob.say(room, "> <@grouped> an answer\n\nwhy?", { "m.relates_to": { "m.in_reply_to": { event_id: own } } });
    await bob.say(room, "!help");
    await bob.say(room, "!weather");
    const drafts = await agent.host.untilAccepted(5);
    assert.deepEqual(
      drafts.map(({ text, addressed, direct, quote }) => ({ text, addressed, direct, quote })),
      [
        { text: "hello all", addressed: false, direct: false, quote: undefined },
        { text: "do it", addressed: true, direct: false, quote: undefined },
        {
          text: "why?",
          addressed: true,
          direct: false,
          quote: { text: "an answer", ofAgent: true },
        },
        { text: "!help", addressed: true, direct: false, quote: undefined },
        { text: "!weather", addressed: false, direct: false, quote: undefined },
      ],
    );
  });

  test("keeps a thread as a conversation, answers in it and reports deletions in it", async () => {
    const room = await ann.createRoom();
    await using agent = await Agent.open(synapse, "threaded", { groups: [room] });
    await ann.invite(room, agent.userId);
    await ann.untilJoined(room, agent.userId);
    const root = await ann.say(room, "the subject");
    const inThread = {
      rel_type: "m.thread",
      event_id: root,
      is_falling_back: true,
      "m.in_reply_to": { event_id: root },
    };
    const id = await ann.say(room, "a detail", { "m.relates_to": inThread });
    const [, draft] = await agent.host.untilAccepted(2);
    assert.equal(draft?.conversation, `${room}/${root}`);
    assert.equal(draft?.group, room);
    assert.equal(draft?.quote, undefined);
    await sentId(agent, textPart(agent, draft?.conversation ?? "", "an answer", { address: draft?.replyTo }));
    const [answer] = await ann.untilMessages(room, agent.userId, 1);
    assert.deepEqual(relation(answer?.content ?? {}), { ...inThread, "m.in_reply_to": { event_id: id } });
    await ann.redact(room, id);
    const deletion = await agent.host.until(
      "the deletion",
      () => agent.host.changed.find(({ change }) => change.kind === "deleted") ?? null,
    );
    assert.deepEqual([deletion.messageId, deletion.conversation], [id, `${room}/${root}`]);
  });

  test("reports edits, reactions and deletions, and no edit of somebody else's message", async () => {
    await using agent = await Agent.open(synapse, "changes", { owners: [ann.userId] });
    const room = await agent.direct(ann);
    const own = await sentId(agent, textPart(agent, room, "an answer"));
    const id = await ann.say(room, "one");
    const edit = (target: string) => ({
      "m.new_content": { msgtype: "m.text", body: "two" },
      "m.relates_to": { rel_type: "m.replace", event_id: target },
    });
    await ann.say(room, "* two", edit(own));
    await ann.say(room, "* two", edit(id));
    await ann.send(room, "m.reaction", { "m.relates_to": { rel_type: "m.annotation", event_id: own, key: "👍" } });
    await ann.redact(room, id);
    const changed = await agent.host.until("3 changes", () =>
      agent.host.changed.length >= 4 ? agent.host.changed : null,
    );
    assert.deepEqual(
      changed.map(({ change, messageId, contact }) => ({ ...change, messageId, of: contact.id })),
      [
        { kind: "membership", joined: true, messageId: changed[0]?.messageId, of: agent.userId },
        { kind: "edited", text: "two", messageId: id, of: ann.userId },
        { kind: "reaction", reaction: "👍", ofAgent: true, messageId: own, of: ann.userId },
        { kind: "deleted", messageId: id, of: ann.userId },
      ],
    );
  });

  test("receives files with their captions and sends files", async () => {
    await using agent = await Agent.open(synapse, "files", { owners: [ann.userId] });
    const room = await agent.direct(ann);
    const content = Buffer.from("\u0089PNG and more");
    const url = await ann.upload(content, "image/png");
    const info = { mimetype: "image/png", size: content.length };
    await ann.say(room, "what is this?", { msgtype: "m.image", filename: "cat.png", url, info });
    const [draft] = await agent.host.untilAccepted(1);
    assert.equal(draft?.text, "what is this?");
    assert.deepEqual(draft?.files, [{ kind: "image", name: "cat.png", bytes: content.length, handle: url }]);
    const fetched = await agent.adapter.fetchFile?.(url, 1_000, soon());
    assert.deepEqual(Buffer.from(fetched as Uint8Array), content);
    assert.equal(await agent.adapter.fetchFile?.(url, 5, soon()), "too_large");
    const file = { name: "plan.pdf", mediaType: "application/pdf", content };
    await sentId(agent, { ...textPart(agent, room, "f"), text: null, file });
    const [message] = await ann.untilMessages(room, agent.userId, 1);
    assert.equal(message?.content["msgtype"], "m.file");
    assert.equal(message?.content["filename"], "plan.pdf");
    assert.deepEqual(await ann.download(String(message?.content["url"])), content);
    const large = { ...file, content: Buffer.alloc(5 * 1024 * 1024) };
    const outcome = await agent.adapter.send({ ...textPart(agent, room, "g"), text: null, file: large }, soon());
    assert.equal(outcome.state, "dropped");
  });

  test("sends HTML with a plain body, edits, deletes and reacts", async () => {
    await using agent = await Agent.open(synapse, "sends", { owners: [ann.userId] });
    const room = await agent.direct(ann);
    const address = { channel: "matrix", account: "main", conversation: room };
    const id = await sentId(agent, textPart(agent, room, "a **b** c\n\n- d"));
    const [message] = await ann.untilMessages(room, agent.userId, 1);
    assert.equal(message?.content["body"], "a b c\n\n• d");
    assert.equal(message?.content["format"], "org.matrix.custom.html");
    assert.match(String(message?.content["formatted_body"]), /<strong>b<\/strong>[^]*<li>d<\/li>/);
    const { text } = textPart(agent, room, "the *whole* answer");
    assert.ok(text !== null);
    assert.equal((await agent.adapter.edit?.(address, id, text, soon()))?.state, "sent");
    const shown = await ann.call("GET", `/rooms/${encodeURIComponent(room)}/event/${encodeURIComponent(id)}`);
    assert.match(JSON.stringify(shown["unsigned"]), /the whole answer/);
    const question = await ann.say(room, "hm");
    for (const reaction of ["👀", "👀", null]) {
      assert.equal((await agent.adapter.react?.(address, question, reaction, soon()))?.state, "sent");
    }
    const reactions = (await ann.events(room)).filter(({ type }) => type === "m.reaction");
    assert.deepEqual(
      reactions.map(({ content }) => content),
      [{}],
    );
    assert.equal((await agent.adapter.remove?.(address, id, soon()))?.state, "sent");
    assert.deepEqual((await ann.messagesOf(room, agent.userId))[0]?.content, {});
  });

  test("shows and hides the typing indicator", async () => {
    await using agent = await Agent.open(synapse, "types", { owners: [ann.userId] });
    const room = await agent.direct(ann);
    const address = { channel: "matrix", account: "main", conversation: room };
    await agent.adapter.typing?.(address);
    const shown = await ann.typing(room);
    assert.deepEqual(shown.userIds, [agent.userId]);
    await agent.adapter.stopTyping?.(address);
    assert.deepEqual((await ann.typing(room, shown.next, 5_000)).userIds, []);
  });

  test("sends a message once when its response was lost", async () => {
    await using proxy = await startFaultyProxy(synapse.url);
    await using agent = await Agent.open(synapse, "repeats", { owners: [ann.userId] }, proxy.url);
    const room = await agent.direct(ann);
    const part = textPart(agent, room, "once");
    proxy.failNext(/send\/m\.room\.message/, "lost");
    assert.equal((await agent.adapter.send(part, soon())).state, "retry");
    const id = await sentId(agent, part);
    const messages = await ann.untilMessages(room, agent.userId, 1);
    assert.deepEqual(
      messages.map(({ event_id: eventId }) => eventId),
      [id],
    );
  });

  test("keeps the pause that the homeserver demands", async () => {
    await using agent = await Agent.open(synapse, "fast", { owners: [ann.userId] });
    const room = await agent.direct(ann);
    await synapse.limit(agent.userId, { perSecond: 1, burst: 1 });
    // At the same time: one after the other could take a second each on a busy machine.
    const texts = Array.from({ length: 10 }, (_, number) => `text ${number}`);
    const outcomes = await Promise.all(texts.map((text) => agent.adapter.send(textPart(agent, room, text), soon())));
    const limited = outcomes.find((outcome) => outcome.state === "retry");
    assert.equal(limited?.scope, "account");
    assert.ok(limited.afterMs > 0 && limited.afterMs <= 1_000, String(limited.afterMs));
  });

  test("keeps a pause that only Retry-After names, for its messages and for its connection", async () => {
    await using proxy = await startFaultyProxy(synapse.url);
    await using agent = await Agent.open(synapse, "paused", { owners: [ann.userId] }, proxy.url);
    const room = await agent.direct(ann);
    const body = { errcode: "M_LIMIT_EXCEEDED", error: "Too Many Requests" };
    const limited = (seconds: string) => ({ status: 429, body, headers: { "retry-after": seconds } });
    proxy.failNext(/send\/m\.room\.message/, limited("7"));
    assert.deepEqual(await agent.adapter.send(textPart(agent, room, "x"), soon()), {
      state: "retry",
      afterMs: 7_000,
      reason: "M_LIMIT_EXCEEDED Too Many Requests",
      scope: "account",
    });
    proxy.failNext(/\/sync/, limited("1"));
    const startedAt = performance.now();
    await ann.say(room, "ends the long poll");
    assert.match(String(await agent.ended()), /M_LIMIT_EXCEEDED/);
    assert.ok(performance.now() - startedAt >= 990);
  });

  test("drops a message to a room where the agent may not write, and says why", async () => {
    await using agent = await Agent.open(synapse, "muted", { owners: [ann.userId] });
    const room = await agent.direct(ann);
    const levels = { users: { [ann.userId]: 100 }, events_default: 50 };
    await ann.call("PUT", `/rooms/${encodeURIComponent(room)}/state/m.room.power_levels`, levels);
    const outcome = await agent.adapter.send(textPart(agent, room, "hello"), soon());
    assert.equal(outcome.state, "dropped");
    assert.match("reason" in outcome ? outcome.reason : "", /^M_FORBIDDEN .*permission/);
    const address = { channel: "matrix", account: "main", conversation: room };
    const reacted = await agent.adapter.react?.(address, await ann.say(room, "hm"), "👀", soon());
    assert.equal(reacted?.state, "dropped");
  });

  test("drops a message to a room that the agent has left", async () => {
    await using agent = await Agent.open(synapse, "leaves", { owners: [ann.userId] });
    const room = await agent.direct(ann);
    await ann.call("POST", `/rooms/${encodeURIComponent(room)}/kick`, { user_id: agent.userId });
    assert.equal((await agent.adapter.send(textPart(agent, room, "hello"), soon())).state, "dropped");
    const left = await agent.host.until(
      "the removal",
      () => agent.host.changed.find(({ contact }) => contact.id === ann.userId) ?? null,
    );
    assert.deepEqual(left.change, { kind: "membership", joined: false });
  });

  test("fetches all messages of a long gap, in order", async () => {
    await using agent = await Agent.open(synapse, "gap", { owners: [ann.userId] });
    const room = await agent.direct(ann);
    await ann.say(room, "before");
    await agent.host.untilAccepted(1);
    await agent.host.until("the position", () => agent.host.cursor);
    await agent.disconnect();
    const texts = Array.from({ length: 110 }, (_, index) => `message ${index}`);
    for (const text of texts) await ann.say(room, text);
    await agent.connect();
    await agent.host.untilAccepted(111);
    assert.deepEqual(agent.host.texts, ["before", ...texts]);
  });

  test("receives a batch again when a message of it was not stored", async () => {
    await using agent = await Agent.open(synapse, "retries", { owners: [ann.userId] });
    const room = await agent.direct(ann);
    await agent.disconnect();
    for (const text of ["one", "two", "three"]) await ann.say(room, text);
    agent.host.accept = refuseSecond(agent.host.accept.bind(agent.host));
    await agent.connect();
    assert.match(String(await agent.ended()), /the store is away/);
    assert.deepEqual(agent.host.texts, ["one"]);
    await agent.connect();
    await agent.host.untilAccepted(3);
    assert.deepEqual(agent.host.texts, ["one", "two", "three"]);
  });

  test("ends the connection when the homeserver is away and continues after it", async () => {
    await using proxy = await startFaultyProxy(synapse.url);
    await using agent = await Agent.open(synapse, "away", { owners: [ann.userId] }, proxy.url);
    const room = await agent.direct(ann);
    await ann.say(room, "one");
    await agent.host.untilAccepted(1);
    proxy.failNext(/\/sync/, "cut");
    await ann.say(room, "two");
    assert.match(String(await agent.ended()), /could not be reached/);
    await ann.say(room, "three");
    await agent.connect();
    await agent.host.untilAccepted(3);
    assert.deepEqual(agent.host.texts, ["one", "two", "three"]);
  });

  test("says once in an encrypted room why it does not answer", async () => {
    await using proxy = await startFaultyProxy(synapse.url);
    await using agent = await Agent.open(synapse, "encrypted", { owners: [ann.userId] }, proxy.url);
    const room = await ann.createRoom({ invite: [agent.userId], direct: true, encrypted: true });
    await ann.untilJoined(room, agent.userId);
    const secret = {
      algorithm: "m.megolm.v1.aes-sha2",
      ciphertext: "x",
      device_id: "D",
      sender_key: "k",
      session_id: "s",
    };
    await ann.send(room, "m.room.encrypted", secret);
    const [notice] = await ann.untilMessages(room, agent.userId, 1);
    assert.equal(notice?.content["body"], encryptedNotice);
    // A connection that ends before it has stored that it said so says it again.
    const record = `/user/${agent.userId}/rooms/${encodeURIComponent(room)}/account_data/${noticeType}`;
    await pollUntil(() => agent.account.call("GET", record).catch(() => null), "the record of the notice");
    await agent.disconnect();
    await ann.send(room, "m.room.encrypted", secret);
    await agent.connect();
    await ann.say(room, "unencrypted after all");
    await agent.host.untilAccepted(1);
    assert.equal((await ann.messagesOf(room, agent.userId)).length, 1);
    // The homeserver would also drop a repetition, but it forgets transactions after a day.
    assert.equal(proxy.requests.filter((line) => line.includes("/send/m.room.message/")).length, 1);
  });

  test("names the reason when the token is refused, at the start and later", async () => {
    await using agent = await Agent.open(synapse, "rejected", { owners: [ann.userId] });
    assert.deepEqual(await agent.adapter.check?.(soon()), { as: agent.userId });
    await agent.account.call("POST", "/logout", {});
    const error = await agent.ended();
    assert.ok(error instanceof AccountRejectedError);
    assert.match(error.message, /token refused by the homeserver \(M_UNKNOWN_TOKEN/);
    const checked = agent.adapter.check?.(soon()) ?? Promise.resolve();
    await assert.rejects(checked, AccountRejectedError);
    const outcome = await agent.adapter.send(textPart(agent, "!x:parley.test", "x"), soon());
    assert.deepEqual(outcome.state, "retry");
    const said = `${agent.host.logText} ${error.message} ${JSON.stringify(outcome)}`;
    assert.ok(!said.includes(agent.account.token));
  });

  test("answers matrix-nio, and once when a gateway is killed after it has sent the answer", async (t) => {
    const cleanup = new Cleanup();
    t.after(() => cleanup[Symbol.asyncDispose]());
    const nia = await synapse.nio("nia");
    cleanup.add(async () => nia[Symbol.asyncDispose]());
    const account = await synapse.person("clustered");
    const cluster = await startTestCluster(cleanup, {
      processes: ["channel-gateway"],
      model: true,
      replicas: { "channel-gateway": 2 },
      settings: `
[session]
policy = "per_conversation"
[channels.matrix.main]
homeserver = "${synapse.url}"
token_env = "PARLEY_CHANNEL_MATRIX"
owners = ["${nia.userId}"]
acknowledge = true
`,
      env: { "channel-gateway": { PARLEY_CHANNEL_MATRIX: account.token } },
    });
    const room = await nia.openDirect(account.userId);
    // Texts of answers without the previews of them, which the host shows while they are written.
    const answers = async (count: number) => {
      for (let known = count; ; known += 1) {
        const messages = await nia.received(known);
        const final = messages.filter(({ body }) => !body.endsWith(" …"));
        if (final.length >= count)
          return final.map(({ body, ...more }) => ({ body: body.replace(/^\* /, ""), ...more }));
      }
    };
    await nia.say(room, "say: **one**");
    await answers(1);
    await cluster.fault("outbox.after_send", "kill");
    await nia.say(room, "say: two");
    await answers(2);
    // The answer is visible before the gateway has the response, after which it dies.
    await pollUntil(async () => (await cluster.armed()).length === 0, "the kill");
    const release = cluster.strict?.holdNext();
    await nia.say(room, "say: three four five six seven eight");
    const preview = async () => {
      for (let known = 1; ; known += 1) {
        const shown = (await nia.received(known)).find(({ body }) => /^three.* …$/.test(body));
        if (shown !== undefined) return shown;
      }
    };
    assert.equal((await preview()).edit, false);
    release?.();
    assert.deepEqual(
      (await answers(3)).map(({ sender, body, html, kind }) => ({ sender, body, html, kind })),
      ["one", "two", "three four five six seven eight"].map((body) => ({
        sender: account.userId,
        body,
        html: body === "one" ? "<p><strong>one</strong></p>" : null,
        kind: "RoomMessageText",
      })),
    );
    const thirds = (await nia.received(0)).filter(({ body }) => body.includes("three"));
    assert.equal(thirds.filter(({ edit }) => !edit).length, 1);
    const reactions = (await account.events(room)).filter(({ type }) => type === "m.reaction");
    assert.ok(reactions.length > 0);
  });
});

/** Refuses the second call, as the host does when the store is away. */
function refuseSecond<Rest extends unknown[], Result>(accept: (...rest: Rest) => Promise<Result>) {
  let calls = 0;
  return async (...rest: Rest): Promise<Result> => {
    calls += 1;
    if (calls === 2) throw new Error("the store is away");
    return accept(...rest);
  };
}
