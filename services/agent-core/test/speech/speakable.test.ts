// Conversion of Markdown to text for speech.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { speakable } from "../../src/voice/speakable.ts";

test("removes markup and code and keeps the text of links", () => {
  const text = [
    "# Result",
    "It is **done**, see [the log](https://example.org/log?x=1) or https://example.org/a.",
    "- first `item`",
    "- second",
    "```ts\nconst a = 1;\n```",
    "| a | b |\n| - | - |\n| 1 | 2 |",
  ].join("\n\n");
  const said = speakable(text, 4_000);
  assert.match(said, /^Result\nIt is done, see the log or \(a link\)/);
  assert.match(said, /first item\nsecond\n\(Code omitted\.\)/);
  assert.doesNotMatch(said, /[#*`|]|https|const/);
});

test("returns an empty text when the input contains no words", () => {
  for (const text of ["", "   ", "---", "…!", "<br>"]) assert.equal(speakable(text, 100), "");
});

test("truncates a long text at the end of a sentence if one is near", () => {
  assert.equal(speakable("One sentence here. Another one that does not fit", 30), "One sentence here.");
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 1, max: 60 }), (text, max) => {
      const said = speakable(text, max);
      assert.ok(said.length <= max && said.isWellFormed());
    }),
  );
});
