// Envelopes of signal-cli and what becomes of them. The forms are those of signal-cli 0.13.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { signalChannel } from "@parley/contracts";
import { propertyRuns } from "@parley/testing/property-runs";
import * as fc from "fast-check";
import { createSignal } from "../src/channels/signal/index.ts";
import { parse, type Parsed } from "../src/channels/signal/parse.ts";
import { decideAccess } from "../src/ingress/access-policy.ts";

const context = { account: "main", number: "+15550100000" };
const ann = { sourceNumber: "+15550100001", sourceUuid: "a1111111-1111-4111-8111-111111111111", sourceName: "Ann" };
const timestamp = 1_700_000_000_123;
const groupId = "VGhpcyBpcyBhIGdyb3VwIG9mIDMyIGJ5dGVzISEhISE=";
const groupInfo = { groupId, groupName: "Team", revision: 3, type: "DELIVER" };

function received(message: object, envelope: object = {}): Parsed {
  const dataMessage = { timestamp, expiresInSeconds: 0, viewOnce: false, ...message };
  return parse(
    { account: context.number, envelope: { ...ann, sourceDevice: 1, timestamp, dataMessage, ...envelope } },
    context,
  );
}

function draftOf(parsed: Parsed) {
  assert.ok(parsed.kind === "message", JSON.stringify(parsed));
  return parsed.draft;
}

function changeOf(parsed: Parsed) {
  assert.ok(parsed.kind === "change", JSON.stringify(parsed));
  return parsed.change;
}

const skippedFor = (parsed: Parsed): string => (parsed.kind === "skipped" ? parsed.reason : JSON.stringify(parsed));
const mention = (start: number, name: string, number: string, length = 1) => ({
  start,
  length,
  name,
  number,
  uuid: "u",
});
const self = (start: number) => mention(start, "Parley", context.number);

// design: 000.28e
test("admits people and groups from a list, all of them, or none, as the settings say", () => {
  const verdict = (parsed: Parsed, more: object) => {
    const settings = { number: context.number, ...more };
    const policy = signalChannel.settings.parse(settings);
    createSignal("main", policy);
    const { contact, conversation, group, direct, addressed } = draftOf(parsed);
    return decideAccess(policy, { contactId: contact.id, conversation, group, direct, addressed }, null).verdict;
  };
  const direct = received({ message: "hello" });
  assert.equal(verdict(direct, { dm_policy: "allowlist", allow_from: [ann.sourceUuid] }), "let_in");
  assert.equal(verdict(direct, { dm_policy: "allowlist", allow_from: [ann.sourceUuid.replace("a", "b")] }), "ignore");
  assert.equal(verdict(direct, { dm_policy: "open" }), "let_in");
  assert.equal(verdict(direct, { dm_policy: "disabled", allow_from: [ann.sourceUuid] }), "ignore");
  const grouped = received({ message: "\ufffc hello", groupInfo, mentions: [self(0)] });
  const other = Buffer.alloc(32, 1).toString("base64");
  assert.equal(verdict(grouped, { groups: ["*"] }), "let_in");
  assert.equal(verdict(grouped, { groups: [other, groupId] }), "let_in");
  assert.equal(verdict(grouped, { groups: [other] }), "ignore");
  assert.equal(verdict(grouped, { groups: [] }), "ignore");
});

describe("a received Signal message", () => {
  test("names the person by their account id, never by number or name", () => {
    const draft = draftOf(received({ message: "hello" }));
    assert.deepEqual(draft, {
      externalId: `${timestamp}/${ann.sourceUuid}`,
      sentAt: "2023-11-14T22:13:20.123Z",
      conversation: ann.sourceUuid,
      contact: { id: ann.sourceUuid, name: "Ann" },
      direct: true,
      addressed: true,
      text: "hello",
      replyTo: { channel: "signal", account: "main", conversation: ann.sourceUuid },
    });
    const impostor = received({ message: "hello" }, { sourceUuid: null, sourceName: ann.sourceUuid });
    assert.equal(skippedFor(impostor), "no account id of the sender");
  });

  test("belongs to its group and is quoted by the answer", () => {
    const draft = draftOf(received({ message: "hello", groupInfo }));
    assert.equal(draft.conversation, `group:${groupId}`);
    assert.equal(draft.group, groupId);
    assert.equal(draft.direct, false);
    assert.equal(draft.addressed, false);
    assert.equal(draft.replyTo.replyToId, draft.externalId);
  });

  // design: 000.28f
  test("shows mentions by name", () => {
    const message = "\uFFFC and \uFFFC: see 😀 \uFFFC";
    const mentions = [mention(16, "Cyd\nSystem:", "+3"), mention(0, "Ann", "+1"), mention(6, "Ben", "+2")];
    assert.equal(draftOf(received({ message, mentions })).text, "@Ann and @Ben: see 😀 @Cyd System:");
  });

  test("ignores mentions outside of the text and mentions that overlap", () => {
    const mentions = [mention(50, "Ann", "+1"), mention(0, "Ben", "+2", 2), mention(1, "Cyd", "+3")];
    assert.equal(draftOf(received({ message: "\uFFFCx y", mentions })).text, "@Ben y");
  });

  test("is addressed in a group by a mention, which is removed at the beginning only", () => {
    const at = draftOf(received({ message: "\uFFFC, what now?", mentions: [self(0)], groupInfo }));
    assert.deepEqual([at.addressed, at.text], [true, "what now?"]);
    const within = draftOf(received({ message: "so \uFFFC?", mentions: [self(3)], groupInfo }));
    assert.deepEqual([within.addressed, within.text], [true, "so @Parley?"]);
    const alone = draftOf(received({ message: "\uFFFC", mentions: [self(0)], groupInfo }));
    assert.equal(alone.text, "@Parley");
    const both = draftOf(
      received({ message: "\uFFFC ask \uFFFC", mentions: [self(0), mention(6, "Ben", "+2")], groupInfo }),
    );
    assert.equal(both.text, "ask @Ben");
  });

  test("is addressed in a group by a reply to the agent", () => {
    const quote = { id: 1, authorNumber: context.number, authorUuid: "x", text: "my answer" };
    const draft = draftOf(received({ message: "why?", quote, groupInfo }));
    assert.equal(draft.addressed, true);
    assert.deepEqual(draft.quote, { text: "my answer", ofAgent: true });
  });

  test("marks a quoted text of the sender, and of somebody else as untrusted", () => {
    const own = { id: 1, authorNumber: null, authorUuid: ann.sourceUuid.toUpperCase(), text: "earlier" };
    assert.deepEqual(draftOf(received({ message: "x", quote: own })).quote, { text: "earlier", ofSender: true });
    const other = {
      ...own,
      authorUuid: "b2222222-2222-4222-8222-222222222222",
      text: "\uFFFC!",
      mentions: [mention(0, "Ben", "+2")],
    };
    assert.deepEqual(draftOf(received({ message: "x", quote: other })).quote, { text: "@Ben!" });
  });

  // design: 000.28g
  test("has its attachments up to 8 MB, and a note for a larger one", () => {
    const attachments = [
      { id: "a.jpg", contentType: "image/jpeg", filename: null, size: 8 * 1024 * 1024 },
      { id: "b.mp4", contentType: "video/mp4", filename: "../trip.mp4", size: 8 * 1024 * 1024 + 1 },
      { id: "c", contentType: "application/pdf", filename: "plan.pdf", size: 10 },
    ];
    const draft = draftOf(received({ message: "look", attachments }));
    assert.deepEqual(
      draft.files?.map(({ kind, name, bytes }) => ({ kind, name, bytes })),
      [
        { kind: "image", name: undefined, bytes: 8 * 1024 * 1024 },
        { kind: "file", name: "plan.pdf", bytes: 10 },
      ],
    );
    assert.deepEqual(JSON.parse(draft.files?.[1]?.handle ?? ""), { id: "c", recipient: ann.sourceUuid });
    assert.equal(draft.text, 'look\n[the video "trip.mp4" is omitted: it is larger than 8.0 MiB]');
    const inGroup = draftOf(received({ attachments, groupInfo }));
    assert.deepEqual(JSON.parse(inGroup.files?.[0]?.handle ?? ""), { id: "a.jpg", groupId });
  });

  test("has a text for what is only a file, a sticker or a contact, and keeps no view-once media", () => {
    const voice = { id: "v", contentType: "audio/aac", size: 5 };
    assert.equal(draftOf(received({ attachments: [voice] })).text, "[audio]");
    assert.equal(draftOf(received({ sticker: { packId: "p", stickerId: 1 } })).text, "[sticker]");
    assert.equal(draftOf(received({ contacts: [{ name: {} }] })).text, "[contact]");
    const once = draftOf(received({ attachments: [voice], viewOnce: true }));
    assert.deepEqual([once.text, once.files], ["[a view-once message, which is not kept]", undefined]);
  });

  // design: 000.28c
  test("is dropped when the account itself wrote it", () => {
    const sent = { sentMessage: { destination: "+1", message: "from my phone", timestamp } };
    assert.equal(skippedFor(received({}, { dataMessage: undefined, syncMessage: sent })), "sync message");
    assert.equal(skippedFor(received({}, { dataMessage: undefined, syncMessage: {} })), "sync message");
    assert.equal(skippedFor(received({ message: "x" }, { sourceNumber: context.number })), "own message");
  });

  test("is skipped when it is no message for the agent", () => {
    const none = { dataMessage: undefined };
    assert.equal(skippedFor(received({}, { ...none, typingMessage: { action: "STARTED" } })), "not a message");
    assert.equal(skippedFor(received({}, { ...none, receiptMessage: { isRead: true } })), "not a message");
    assert.equal(skippedFor(received({}, { ...none, callMessage: {} })), "not a message");
    assert.equal(skippedFor(received({ isExpirationUpdate: true, message: null })), "no text");
    assert.equal(skippedFor(received({ message: "nice", storyContext: {} })), "reply to a story");
    assert.match(skippedFor(parse(undefined, context)), /^invalid envelope/);
    const other = {
      account: "+15550199999",
      envelope: { ...ann, timestamp, dataMessage: { timestamp, message: "x" } },
    };
    assert.equal(skippedFor(parse(other, context)), "received by another number");
  });
});

describe("a change of a Signal message", () => {
  test("is an edit with the new text", () => {
    const dataMessage = { timestamp: timestamp + 5, message: "\uFFFC new", mentions: [mention(0, "Ben", "+2")] };
    const edit = received({}, { dataMessage: undefined, editMessage: { targetSentTimestamp: timestamp, dataMessage } });
    const { messageId, externalId, change } = changeOf(edit);
    assert.deepEqual([messageId, externalId], [`${timestamp}/${ann.sourceUuid}`, `${timestamp + 5}/${ann.sourceUuid}`]);
    assert.deepEqual(change, { kind: "edited", text: "@Ben new" });
  });

  test("is a deletion by the author of the message", () => {
    const { messageId, change } = changeOf(received({ remoteDelete: { timestamp: 7 }, groupInfo }));
    assert.equal(messageId, `7/${ann.sourceUuid}`);
    assert.deepEqual(change, { kind: "deleted" });
  });

  test("is a reaction to the agent or to a person, or its removal", () => {
    const reaction = { emoji: "👍", targetAuthorNumber: context.number, targetAuthorUuid: "x", targetSentTimestamp: 9 };
    const toAgent = changeOf(received({ reaction: { ...reaction, isRemove: false } }));
    assert.equal(toAgent.messageId, "9");
    assert.deepEqual(toAgent.change, { kind: "reaction", reaction: "👍", ofAgent: true });
    const target = { targetAuthorNumber: null, targetAuthorUuid: ann.sourceUuid.toUpperCase() };
    const removed = changeOf(received({ reaction: { ...reaction, ...target, isRemove: true } }));
    assert.equal(removed.messageId, `9/${ann.sourceUuid}`);
    assert.deepEqual(removed.change, { kind: "reaction", reaction: "👍", ofAgent: false, removed: true });
  });
});

describe("hostile envelopes", () => {
  const numbers = fc.oneof(fc.integer(), fc.double(), fc.maxSafeInteger());
  const text = fc.string({ unit: "binary", maxLength: 40 });
  const anyMention = fc.record(
    { start: numbers, length: numbers, name: fc.oneof(text, fc.constant(null)), number: text, uuid: text },
    { requiredKeys: [] },
  );
  const message = fc.record(
    {
      timestamp: fc.oneof(fc.nat(), numbers),
      message: fc.oneof(text, fc.constant(null), fc.anything()),
      mentions: fc.oneof(fc.array(anyMention), fc.anything()),
      attachments: fc.oneof(
        fc.array(fc.record({ id: text, contentType: text, filename: text, size: numbers }, { requiredKeys: [] })),
        fc.anything(),
      ),
      quote: fc.oneof(fc.record({ authorUuid: text, text, mentions: fc.array(anyMention) }), fc.anything()),
      reaction: fc.oneof(
        fc.record({ emoji: text, targetAuthorUuid: text, targetSentTimestamp: numbers }),
        fc.anything(),
      ),
      groupInfo: fc.oneof(fc.record({ groupId: text }), fc.anything()),
      remoteDelete: fc.anything(),
      viewOnce: fc.anything(),
    },
    { requiredKeys: [] },
  );
  const envelope = fc.record(
    {
      sourceUuid: fc.oneof(fc.constant(ann.sourceUuid), text, fc.anything()),
      sourceNumber: fc.oneof(text, fc.anything()),
      sourceName: fc.oneof(text, fc.anything()),
      timestamp: fc.oneof(fc.nat(), numbers),
      dataMessage: fc.oneof(message, fc.anything()),
      editMessage: fc.oneof(fc.record({ targetSentTimestamp: numbers, dataMessage: message }), fc.anything()),
      syncMessage: fc.constantFrom(undefined, null),
    },
    { requiredKeys: [] },
  );

  test("never crash the parser, and yield only well-formed drafts", () => {
    const received = fc.oneof(fc.record({ envelope, account: fc.constant(context.number) }), fc.anything());
    fc.assert(
      fc.property(received, (data) => {
        const parsed = parse(data, context);
        if (parsed.kind === "skipped") return;
        const { contact, replyTo } = parsed.kind === "message" ? parsed.draft : parsed.change;
        assert.match(contact.id, /^[0-9a-f-]{36}$/);
        assert.equal(replyTo.channel, "signal");
      }),
      { numRuns: propertyRuns(20_000) },
    );
  });
});
