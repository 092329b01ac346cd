// Cases about messages of a person: complete, unchanged, attributed, and with an address that answers them.
import assert from "node:assert/strict";
import { InboundMessageSchema, ReplyAddressSchema } from "@parley/contracts";
import { seenAfter, type ConformanceCase } from "./subject.ts";

/** A text that the host receives as the person wrote it. */
function receives(name: string, text: string, multiline = false): ConformanceCase {
  return {
    group: "inbound",
    name: `receives ${name} unchanged`,
    run: async (subject) => {
      if (multiline && subject.limits.singleLine === true) return;
      assert.equal((await subject.say(text)).text, text);
    },
  };
}

export const inboundCases: readonly ConformanceCase[] = [
  {
    group: "inbound",
    name: "receives a message with its person and conversation",
    run: async (subject) => {
      const { text, contact, conversation, externalId, direct } = await subject.say("good morning");
      assert.equal(text, "good morning");
      assert.ok(contact.id !== "" && conversation !== "" && externalId !== "");
      assert.equal(direct, true);
    },
  },
  {
    group: "inbound",
    name: "gives two messages with the same text different ids and the same conversation",
    run: async (subject) => {
      const [one, two] = [await subject.say("again"), await subject.say("again")];
      assert.notEqual(one.externalId, two.externalId);
      assert.deepEqual([one.conversation, one.contact], [two.conversation, two.contact]);
    },
  },
  receives("a question mark and markup characters", "is 1 < 2 & *3* > _4_?"),
  receives("text that looks like an address", "see https://example.com/a?b=1&c=2"),
  receives("text from right to left", "שלום"),
  receives("characters outside of the basic plane", "ä 漢字 😀"),
  receives("joined emoji", "👩‍👩‍👧‍👦"),
  receives("HTML and character references", "<b>x</b> &amp; &lt;i&gt;"),
  receives("a command", "!status now"),
  receives("several lines", "first\nsecond\n\nthird", true),
  receives("a long text", `${"a line of a long text\n".repeat(150)}end`, true),
  {
    group: "inbound",
    name: "receives messages that are sent at the same time, each once and in order",
    run: async (subject) => {
      const texts = ["burst one", "burst two", "burst three"];
      const received: string[] = [];
      for (const text of texts) received.push((await subject.say(text)).text);
      assert.deepEqual(received, texts);
    },
  },
  {
    group: "inbound",
    name: "marks a plain message as addressed, without files, quotations or a forwarded sender",
    run: async (subject) => {
      const { addressed, files, isMarked } = await subject.say("a plain message");
      assert.deepEqual({ addressed, files, isMarked }, { addressed: true, files: 0, isMarked: false });
    },
  },
  {
    group: "inbound",
    name: "passes on a group's message that does not mention the agent, with its person, as not addressed",
    run: async (subject) => {
      if (subject.sayInGroup === undefined) return;
      const { text, contact, conversation, externalId, direct, addressed } = await subject.sayInGroup("to the others");
      assert.deepEqual({ text, direct, addressed }, { text: "to the others", direct: false, addressed: false });
      assert.ok(contact.id !== "" && externalId !== "");
      assert.notEqual(conversation, (await subject.say("in private")).conversation);
    },
  },
  {
    group: "inbound",
    name: "gives ids, a name and a time that the store accepts",
    run: async (subject) => {
      const { externalId, messageId, conversation, contact, sentAt, text } = await subject.say("stored");
      const { channel, account } = subject;
      const message = { channel, account, externalId, messageId, conversation, contact, sentAt };
      InboundMessageSchema.parse({
        ...message,
        role: "guest",
        origin: "user",
        parts: [{ type: "text", text }],
        replyTo: null,
      });
    },
  },
  {
    group: "inbound",
    name: "gives an address of its own account that survives storage",
    run: async (subject) => {
      const { replyTo } = await subject.say("where to answer");
      assert.deepEqual([replyTo.channel, replyTo.account], [subject.channel, subject.account]);
      assert.deepEqual(ReplyAddressSchema.parse(JSON.parse(JSON.stringify(replyTo))), replyTo);
    },
  },
  {
    group: "inbound",
    name: "answers to the address of a message",
    run: async (subject) => {
      const { replyTo } = await subject.say("please answer");
      const texts = (await seenAfter(subject, "the answer", { to: replyTo })).map(({ text }) => text.trim());
      assert.deepEqual(texts, ["the answer"]);
    },
  },
];
