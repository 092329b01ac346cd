import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { PeoplePolicy } from "@parley/contracts";
import { decideAccess } from "../src/ingress/access-policy.ts";
import type { InboundDraft } from "../src/channels/channel.ts";
import { parse } from "../src/channels/telegram/parse.ts";

const me = { id: 7, is_bot: true, first_name: "Parley", username: "Parley_Bot" };
const ann = { id: 42, is_bot: false, first_name: "Ann", last_name: "Lee" };
const group = { id: -1001, type: "supergroup", title: "Team" };
const privately = { id: 42, type: "private", first_name: "Ann" };

function draftOf(message: Record<string, unknown>): InboundDraft {
  const parsed = parse({ update_id: 5, message: { message_id: 9, from: ann, chat: group, ...message } }, me, "main");
  if (parsed.kind !== "message") assert.fail(JSON.stringify(parsed));
  return parsed.draft;
}

function reasonOf(update: Record<string, unknown>): string {
  const parsed = parse({ update_id: 5, ...update }, me, "main");
  if (parsed.kind !== "skipped") assert.fail("was not skipped");
  return parsed.reason;
}

const entity = (type: string, offset: number, length: number, more: object = {}): object => ({
  type,
  offset,
  length,
  ...more,
});

test("treats a private message as addressed and replies without a quote", () => {
  assert.deepEqual(draftOf({ chat: privately, text: "hi", date: 1_795_000_000 }), {
    externalId: "5",
    messageId: "9",
    sentAt: "2026-11-18T11:06:40.000Z",
    conversation: "42",
    contact: { id: "42", name: "Ann Lee" },
    direct: true,
    addressed: true,
    text: "hi",
    replyTo: { channel: "telegram", account: "main", conversation: "42" },
  });
});

test("treats a group message as addressed only by mention, named command, reply or text mention", () => {
  const addressed = (message: object): boolean => draftOf({ text: "", ...message }).addressed;
  assert.equal(addressed({ text: "hi all" }), false);
  assert.equal(addressed({ text: "hi @parley_bot", entities: [entity("mention", 3, 11)] }), true);
  assert.equal(addressed({ text: "hi @parley_bot" }), false, "Telegram reported no mention");
  assert.equal(addressed({ text: "hi @parley_bot2", entities: [entity("mention", 3, 12)] }), false);
  assert.equal(addressed({ text: "/stop@Parley_Bot", entities: [entity("bot_command", 0, 16)] }), true);
  assert.equal(addressed({ text: "/stop@other_bot", entities: [entity("bot_command", 0, 15)] }), false);
  assert.equal(addressed({ text: "you", entities: [entity("text_mention", 0, 3, { user: me })] }), true);
  assert.equal(addressed({ text: "yes", reply_to_message: { from: me } }), true);
  assert.equal(addressed({ text: "yes", reply_to_message: { from: ann } }), false);
  assert.equal(addressed({ text: "yes", reply_to_message: { from: me, forum_topic_created: {} } }), false);
  assert.equal(
    addressed({
      text: undefined,
      photo: [{}],
      caption: "@parley_bot look",
      caption_entities: [entity("mention", 0, 11)],
    }),
    true,
  );
});

test("removes the bot's name from commands and a leading mention from texts", () => {
  const textOf = (text: string, first: object): string => draftOf({ text, entities: [first] }).text;
  assert.equal(textOf("/stop@Parley_Bot now", entity("bot_command", 0, 16)), "/stop now");
  assert.equal(textOf("@parley_bot, /stop", entity("mention", 0, 11)), "/stop");
  assert.equal(textOf("@parley_bot", entity("mention", 0, 11)), "@parley_bot");
});

test("quotes the message that is replied to, or the selected part of it", () => {
  const quoteOf = (reply: object, more: object = {}) => draftOf({ text: "a", reply_to_message: reply, ...more }).quote;
  const bob = { id: 43, is_bot: false, first_name: "Bob" };
  assert.deepEqual(quoteOf({ from: bob, text: "hello" }), { text: "hello", author: "Bob" });
  assert.deepEqual(quoteOf({ from: bob, caption: "a photo" }), { text: "a photo", author: "Bob" });
  assert.deepEqual(quoteOf({ from: bob, text: "hello there" }, { quote: { text: "there" } })?.text, "there");
  assert.deepEqual(quoteOf({ from: me, text: "done" }), { text: "done", author: "Parley", ofAgent: true });
  assert.deepEqual(quoteOf({ from: ann, text: "mine" }), { text: "mine", author: "Ann Lee", ofSender: true });
  const forwarded = quoteOf({ from: ann, text: "of others", forward_origin: { type: "hidden_user" } });
  assert.deepEqual(forwarded, { text: "of others", author: "Ann Lee" });
  assert.equal(quoteOf({ from: ann, text: "x", forum_topic_created: {} }), undefined);
  assert.equal(quoteOf({ from: ann }), undefined);
});

// design: 004.7
test("treats a topic, but not a reply thread, as a separate conversation", () => {
  assert.equal(draftOf({ text: "a", message_thread_id: 3, is_topic_message: true }).conversation, "-1001:3");
  assert.equal(draftOf({ text: "a", message_thread_id: 3 }).conversation, "-1001");
  assert.equal(draftOf({ text: "a" }).replyTo.replyToId, "9");
});

test("authorizes a topic by its group", () => {
  const topic = draftOf({ text: "a", message_thread_id: 3, is_topic_message: true });
  assert.equal(topic.group, "-1001");
  assert.equal(draftOf({ text: "a" }).group, undefined);
  assert.equal(draftOf({ chat: privately, text: "a", message_thread_id: 3, is_topic_message: true }).group, undefined);
  const people: PeoplePolicy = {
    owners: [],
    allow_from: [],
    dm_policy: "pairing",
    groups: ["-1001"],
    require_mention: false,
  };
  const sender = { contactId: topic.contact.id, ...topic };
  assert.deepEqual(decideAccess(people, sender, null), { verdict: "let_in", role: "guest" });
  const elsewhere = decideAccess({ ...people, groups: ["-1001:3"] }, sender, null);
  assert.deepEqual(elsewhere, { verdict: "ignore", reason: "group_not_listed" });
});

test("identifies a message sent as a channel or group by that chat", () => {
  const draft = draftOf({ text: "a", from: { id: 1087968824, is_bot: true, first_name: "Group" }, sender_chat: group });
  assert.deepEqual(draft.contact, { id: "-1001", name: "Team" });
});

test("names a file without a caption and marks parts of an album", () => {
  assert.equal(draftOf({ photo: [{}], caption: "look" }).text, "look");
  assert.equal(draftOf({ photo: [{}] }).text, "[photo]");
  assert.equal(draftOf({ document: { file_name: "a.pdf" } }).text, "[document: a.pdf]");
  assert.equal(draftOf({ photo: [{}] }).album, undefined);
  const part = draftOf({ photo: [{}], media_group_id: "1" });
  assert.deepEqual([part.text, part.album], ["[photo]", true]);
});

test("selects the largest size of a photo and the reported file otherwise", () => {
  const filesOf = (fields: Record<string, unknown>) => {
    const parsed = parse({ update_id: 1, message: { message_id: 1, from: ann, chat: group, ...fields } }, me, "main");
    return parsed.kind === "message" ? (parsed.draft.files ?? []) : [];
  };
  const sizes = [
    { file_id: "small", file_size: 1 },
    { file_id: "large", file_size: 9 },
  ];
  assert.deepEqual(filesOf({ photo: sizes }), [{ handle: "large", kind: "photo", name: undefined, bytes: 9 }]);
  const pdf = { file_id: "f", file_name: "a.pdf", mime_type: "application/pdf" };
  assert.deepEqual(filesOf({ document: pdf }), [{ handle: "f", kind: "document", name: "a.pdf", bytes: null }]);
  assert.deepEqual(filesOf({ voice: { file_id: "v", file_size: 5 } }), [
    { handle: "v", kind: "voice", name: undefined, bytes: 5 },
  ]);
  assert.deepEqual(filesOf({ text: "none", location: {} }), []);
});

test("skips other updates with a reason", () => {
  assert.match(reasonOf({ edited_message: {} }), /invalid message/);
  assert.match(reasonOf({ my_chat_member: {} }), /invalid change/);
  assert.match(reasonOf({ poll_answer: {} }), /poll_answer/);
  assert.match(reasonOf({ hologram: {} }), /hologram/);
  assert.match(reasonOf({}), /empty/);
  assert.match(reasonOf({ message: { message_id: 1, chat: group, new_chat_title: "x" } }), /no sender/);
  assert.match(reasonOf({ message: { message_id: 1, from: ann, chat: group, new_chat_title: "x" } }), /no text/);
  assert.match(reasonOf({ message: { message_id: 1, from: { ...ann, is_bot: true }, chat: group, text: "x" } }), /bot/);
  assert.match(reasonOf({ message: { message_id: "x" } }), /message_id/);
});

test("never throws for any update", () => {
  fc.assert(
    fc.property(
      fc.object({
        maxDepth: 4,
        key: fc.constantFrom("message", "from", "chat", "id", "text", "entities", "type", "offset", "x"),
      }),
      (update) => {
        parse({ ...update, update_id: 1 }, me, "main");
      },
    ),
  );
});

test("marks a message as forwarded, with the author when Telegram reports one", () => {
  const forwarded = (fields: object) => draftOf({ chat: privately, text: "hi", ...fields }).forwarded;
  assert.equal(forwarded({}), undefined);
  const user = { type: "user", date: 1, sender_user: { id: 5, is_bot: false, first_name: "Mal", last_name: "Lory" } };
  assert.deepEqual(forwarded({ forward_origin: user }), { from: "Mal Lory" });
  assert.deepEqual(forwarded({ forward_origin: { type: "hidden_user", sender_user_name: "M" } }), { from: "M" });
  assert.deepEqual(
    forwarded({ forward_origin: { type: "channel", chat: { id: -5, type: "channel", title: "News" } } }),
    {
      from: "News",
    },
  );
  assert.deepEqual(forwarded({ forward_origin: { type: "chat", sender_chat: { id: -5, type: "group" } } }), {});
  assert.deepEqual(forwarded({ forward_origin: "unreadable" }), {});
  assert.deepEqual(forwarded({ forward_date: 1 }), {});
});
