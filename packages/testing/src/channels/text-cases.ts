// Cases about the text of an answer: what the person sees is what the agent wrote, without markup of another format.
import assert from "node:assert/strict";
import { seenAfter, type ConformanceCase } from "./subject.ts";

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

/** A text with structure: the pieces arrive in this order, in any number of messages and any layout. */
function arrivesInOrder(name: string, text: string, pieces: readonly string[]): ConformanceCase {
  return {
    group: "text",
    name,
    run: async (subject) => {
      const messages = await seenAfter(subject, text);
      const shown = messages.map((message) => message.text).join("\n");
      let from = 0;
      for (const piece of pieces) {
        const at = shown.indexOf(piece, from);
        assert.ok(at >= 0, `${JSON.stringify(piece)} is missing in ${JSON.stringify(shown)}`);
        from = at + piece.length;
      }
    },
  };
}

/** A text without anything to show: it may be sent or not, but nobody sees an empty message. */
function showsNoEmptyMessage(name: string, text: string): ConformanceCase {
  return {
    group: "text",
    name,
    run: async (subject) => {
      const before = (await subject.seen(0)).length;
      const outcomes = await subject.send(text);
      for (const { state, reason } of outcomes) assert.equal(state, "sent", reason);
      const messages = (await subject.seen(before + outcomes.length)).slice(before);
      for (const message of messages) assert.notEqual(message.text.trim(), "");
    },
  };
}

export const textCases: readonly ConformanceCase[] = [
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
  arrives("keeps flags and keycaps", "🇩🇪 1️⃣"),
  arrives("keeps a backslash at the end", "C:\\temp\\"),
  arrives("keeps symbols of templates", "100% of $5 {x} ^y"),
  arrives("keeps full-width punctuation", "你好,世界!"),
  {
    group: "text",
    name: "sends valid Unicode when a character is half of a pair",
    run: async (subject) => {
      const [message] = await seenAfter(subject, "half \ud83d end");
      assert.ok(message !== undefined && message.text.isWellFormed());
      assert.match(message.text, /half .* ?end/);
    },
  },
  {
    group: "text",
    name: "keeps marks that address everybody elsewhere",
    run: async (subject) => {
      // A word joiner, which nobody sees, is a way to make the mark ineffective.
      const shown = (await seenAfter(subject, "to <!channel> and others")).map(({ text }) =>
        text.replaceAll("\u2060", ""),
      );
      assert.deepEqual(
        shown.map((text) => text.trim()),
        ["to <!channel> and others"],
      );
    },
  },
  {
    group: "text",
    name: "sends no carriage returns",
    run: async (subject) => {
      const shown = (await seenAfter(subject, "first\r\n\r\nsecond")).map((message) => message.text);
      assert.ok(!shown.some((text) => text.trim().includes("\r")), JSON.stringify(shown));
    },
  },
  arrivesInOrder("keeps paragraphs in order", "one\n\ntwo\n\nthree", ["one", "two", "three"]),
  arrivesInOrder("keeps headings above their text", "# Title\n\nbody\n\n## Part\n\nmore", [
    "Title",
    "body",
    "Part",
    "more",
  ]),
  arrivesInOrder("keeps nested lists in order", "- a1\n  - b2\n- c3\n\n1. d4\n2. e5", ["a1", "b2", "c3", "d4", "e5"]),
  arrivesInOrder("keeps the lines of a code block", "```js\nif (a) {\n  b();\n}\n```", ["if (a) {", "b();", "}"]),
  arrivesInOrder("keeps markup in code", "```\n~~x~~ <b> &amp;\n```", ["~~x~~ <b> &amp;"]),
  arrivesInOrder("keeps the cells of a table", "| h1 | h2 |\n| --- | --- |\n| c1 | c2 |", ["h1", "h2", "c1", "c2"]),
  arrivesInOrder("keeps a quotation and its answer", "> quoted\n\nanswer", ["quoted", "answer"]),
  arrivesInOrder("keeps a deeply nested quotation", `${"> ".repeat(60)}deep\n\nend`, ["deep", "end"]),
  arrivesInOrder("keeps unclosed markup", "a **b and `c", ["a ", "b and ", "c"]),
  showsNoEmptyMessage("shows no empty message for white space", " \n\t\n "),
  showsNoEmptyMessage("shows no empty message for a comment", "<!-- -->"),
  showsNoEmptyMessage("shows no empty message for an invisible character", "\u200b"),
];
