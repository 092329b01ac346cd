// What every channel adapter must do, as a list of cases that run against a subject: an adapter, its platform, and a person there.
import assert from "node:assert/strict";
import type { store, TextLimits } from "@parley/contracts";

/** A message as a person on the platform sees it. */
export interface SeenMessage {
  text: string;
  /** The labels of its buttons. */
  buttons: readonly string[];
}

/** A message as the host received it. */
export interface ReceivedMessage {
  externalId: string;
  conversation: string;
  contactId: string;
  direct: boolean;
  text: string;
}

/** An adapter in its conversation with one person. */
export interface ChannelSubject {
  limits: TextLimits;
  hasActions: boolean;
  /** Sends an answer as the host does: split, message by message. Returns the outcome of each message. */
  send(text: string, actions?: readonly store.Action[]): Promise<string[]>;
  /** Sends one message with an aborted signal. */
  sendAborted(text: string): Promise<string>;
  /** Sends one message to a conversation that cannot exist. */
  sendNowhere(text: string): Promise<string>;
  /** All messages that the person has seen so far; waits until there are `count`. */
  seen(count: number): Promise<readonly SeenMessage[]>;
  /** The person writes; returns what the host received. */
  say(text: string): Promise<ReceivedMessage>;
  /** The person presses a button of the last message; returns the input that the host received. */
  press?(label: string): Promise<string>;
}

export interface ConformanceCase {
  group: "text" | "limits" | "inbound" | "outcome" | "actions";
  name: string;
  run: (subject: ChannelSubject) => Promise<void>;
}

const isSent = (outcomes: readonly string[]) => outcomes.length > 0 && outcomes.every((outcome) => outcome === "sent");
const withoutSpace = (text: string) => text.replaceAll(/\s/g, "");

function lengthOf(text: string, unit: TextLimits["lengthUnit"]): number {
  if (unit === "bytes") return Buffer.byteLength(text);
  return unit === "utf16" ? text.length : Array.from(text).length;
}

/** Sends a text and returns the new messages that the person sees. */
async function seenAfter(subject: ChannelSubject, text: string): Promise<readonly SeenMessage[]> {
  const before = (await subject.seen(0)).length;
  const outcomes = await subject.send(text);
  assert.ok(isSent(outcomes), outcomes.join(", "));
  return (await subject.seen(before + outcomes.length)).slice(before);
}

/** A text that arrives as it is, in one message on every channel. */
function arrives(name: string, text: string, expected = text): ConformanceCase {
  return {
    group: "text",
    name,
    run: async (subject) => {
      const messages = await seenAfter(subject, text);
      assert.deepEqual(
        messages.map((message) => message.text.trim()),
        [expected],
      );
    },
  };
}

/** A long text that loses only white space. */
function splits(name: string, text: string, unit = /[^]/gu): ConformanceCase {
  return {
    group: "limits",
    name,
    run: async (subject) => {
      const messages = await seenAfter(subject, text);
      assert.ok(messages.length > 1);
      for (const message of messages) {
        assert.ok(message.text.isWellFormed());
        const length = lengthOf(message.text, subject.limits.lengthUnit);
        assert.ok(length <= subject.limits.maxLength, `${length} ${subject.limits.lengthUnit}`);
        if (subject.limits.singleLine === true) assert.ok(!message.text.includes("\n"));
      }
      const shown = withoutSpace(messages.map((message) => message.text).join(""));
      assert.deepEqual(shown.match(unit), withoutSpace(text).match(unit));
    },
  };
}

const words = (count: number) => Array.from({ length: count }, (_, index) => `word${index}`).join(" ");

export const conformanceCases: readonly ConformanceCase[] = [
  arrives("sends a short text", "Hello there"),
  arrives("shows characters that are markup elsewhere", "5 < 6 & 7 > 2"),
  arrives("shows quotes and backslashes", `"a" 'b' \\ c`),
  arrives("shows HTML of the model as text", "a <script>x</script> b"),
  arrives("shows characters outside of the basic plane", "ä 漢字 😀"),
  arrives("removes control characters", "a\u0000b\u0007c", "abc"),
  arrives("removes the marks of bold text", "a **b** c", "a b c"),
  arrives("keeps characters that begin markup only elsewhere", "2 * 3 = 6, snake_case, a~b"),
  arrives("keeps brackets that are no link", "[1] and (2)"),
  arrives("keeps a character with combining marks", "e\u0301 n\u0303"),
  arrives("keeps a family of joined emoji", "👩‍👩‍👧‍👦"),
  arrives("keeps text from right to left", "שלום عالم"),
  arrives("keeps an address in the text", "see https://example.com/a?b=1&c=2"),
  splits("sends a long answer in order, within the limit", words(2_000)),
  splits("splits a word that is longer than a message", "x".repeat(10_000)),
  splits("never splits a character outside of the basic plane", "😀".repeat(4_000)),
  splits(
    "keeps the order of many lines",
    Array.from({ length: 70 }, (_, line) => `line ${line} ${"with some more text ".repeat(4).trim()}`).join("\n"),
    /line\d+/g,
  ),
  {
    group: "outcome",
    name: "sends nothing when it is cancelled before the send",
    run: async (subject) => {
      const before = (await subject.seen(0)).length;
      assert.equal(await subject.sendAborted("never"), "retry");
      assert.equal((await subject.seen(0)).length, before);
    },
  },
  {
    group: "outcome",
    name: "sends again after a message that was dropped",
    run: async (subject) => {
      await subject.sendNowhere("hello");
      assert.equal((await seenAfter(subject, "after the drop")).length, 1);
    },
  },
  {
    group: "outcome",
    name: "sends two answers in their order",
    run: async (subject) => {
      const before = (await subject.seen(0)).length;
      for (const text of ["first answer", "second answer"]) assert.ok(isSent(await subject.send(text)));
      const texts = (await subject.seen(before + 2)).slice(before).map(({ text }) => text.trim());
      assert.deepEqual(texts, ["first answer", "second answer"]);
    },
  },
  {
    group: "outcome",
    name: "drops a message to a conversation that cannot exist",
    run: async (subject) => assert.equal(await subject.sendNowhere("hello"), "dropped"),
  },
  {
    group: "inbound",
    name: "receives a message with its person and conversation",
    run: async (subject) => {
      const { text, contactId, conversation, externalId, direct } = await subject.say("good morning");
      assert.equal(text, "good morning");
      assert.ok(contactId !== "" && conversation !== "" && externalId !== "");
      assert.equal(direct, true);
    },
  },
  {
    group: "inbound",
    name: "gives two messages with the same text different ids and the same conversation",
    run: async (subject) => {
      const [one, two] = [await subject.say("again"), await subject.say("again and")];
      assert.notEqual(one.externalId, two.externalId);
      assert.deepEqual([one.conversation, one.contactId], [two.conversation, two.contactId]);
    },
  },
  ...(
    [
      ["a question mark and markup characters", "is 1 < 2 & *3* > _4_?"],
      ["text that looks like an address", "see https://example.com/a?b=1&c=2"],
      ["text from right to left", "שלום"],
    ] as const
  ).map(([name, text]): ConformanceCase => ({
    group: "inbound",
    name: `receives ${name} unchanged`,
    run: async (subject) => assert.equal((await subject.say(text)).text, text),
  })),
  {
    group: "inbound",
    name: "receives characters outside of the basic plane unchanged",
    run: async (subject) => assert.equal((await subject.say("ä 漢字 😀")).text, "ä 漢字 😀"),
  },
  {
    group: "actions",
    name: "shows buttons with the last message of an answer and delivers the input of a press",
    run: async (subject) => {
      if (!subject.hasActions || subject.press === undefined) return;
      const before = (await subject.seen(0)).length;
      const outcomes = await subject.send(`${words(2_000)} ?`, [{ label: "Approve", input: "/approve AB12C" }]);
      assert.ok(isSent(outcomes));
      const messages = (await subject.seen(before + outcomes.length)).slice(before);
      assert.deepEqual(
        messages.map(({ buttons }) => buttons.length),
        messages.map((_, index) => (index === messages.length - 1 ? 1 : 0)),
      );
      assert.equal(await subject.press("Approve"), "/approve AB12C");
    },
  },
];
