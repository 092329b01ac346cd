import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";

import { htmlOf } from "../src/channels/telegram/html.ts";
import { richTextOf, type RichText } from "../src/channels/text/rich-text.ts";
import { splitRichText } from "../src/channels/text/split.ts";

const html = (markdown: string): string => htmlOf(richTextOf(markdown));

/** Markdown-like text: words, markup, code, characters outside the basic plane, lone surrogates. */
const markdown = fc
  .array(
    fc.oneof(
      fc.lorem({ maxCount: 8 }),
      fc.constantFrom(
        "\n",
        "\n\n",
        " ",
        "**",
        "_",
        "~~",
        "`",
        "\n```ts\n",
        "\n```\n",
        "\n- ",
        "\n1. ",
        "\n> ",
        "\n# ",
        "[a](http://b.c)",
        "\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        "<b>",
        "&amp;",
        "😀",
        "漢字。",
        "\ud83d",
        "\0",
        "\\",
      ),
      fc.string({ unit: "grapheme", maxLength: 20 }),
    ),
    { maxLength: 60 },
  )
  .map((parts) => parts.join(""));

const withoutSpace = (text: string): string => text.replace(/\s/g, "");

function assertSound({ text, ranges }: RichText): void {
  let before = { start: 0, end: text.length };
  const open: { start: number; end: number }[] = [];
  for (const range of ranges) {
    assert.ok(range.start >= 0 && range.start < range.end && range.end <= text.length, "a range is inside its text");
    assert.ok(range.start >= before.start, "ranges are in order");
    while (open.length > 0 && (open.at(-1)?.end ?? 0) <= range.start) open.pop();
    assert.ok(range.end <= (open.at(-1)?.end ?? text.length), "ranges are nested or disjoint");
    open.push(range);
    before = range;
  }
}

test("converts Markdown to Telegram's HTML", () => {
  assert.equal(
    html("# Title\n\n**b** _i_ ~~s~~ `c<d>`"),
    "<b>Title</b>\n\n<b>b</b> <i>i</i> <s>s</s> <code>c&lt;d&gt;</code>",
  );
  assert.equal(html("[x & y](https://a.b/?c=1&d=2)"), '<a href="https://a.b/?c=1&amp;d=2">x &amp; y</a>');
  assert.equal(html("```ts\nlet a = 1 < 2;\n```"), '<pre><code class="language-ts">let a = 1 &lt; 2;</code></pre>');
  assert.equal(html("> a\n>> b"), "<blockquote>a\n\nb</blockquote>");
  assert.equal(html("1. a\n2. b\n   - **c**"), "1. a\n2. b\n  • <b>c</b>");
  assert.equal(html("- [x] done\n- [ ] open"), "☑ done\n☐ open");
  assert.equal(html("<script>x</script>"), "&lt;script&gt;x&lt;/script&gt;");
});

test("converts a table to a fixed-width block", () => {
  assert.equal(html("| a | bb |\n|---|---:|\n| 1 | 2 |"), "<pre>a | bb\n--+---\n1 |  2</pre>");
});

test("writes out links that are not absolute URLs", () => {
  assert.equal(html("[see](./file.md) [js](javascript:alert)"), "see (./file.md) js (javascript:alert)");
});

test("produces valid ranges for any text in limited time", () => {
  fc.assert(fc.property(markdown, (source) => assertSound(richTextOf(source))));
  const before = process.cpuUsage();
  for (const tangle of ["*a_ ", "[", ">", "`", "a**b", "<", "![", "- "]) richTextOf(tangle.repeat(20_000));
  assert.ok(process.cpuUsage(before).user < 5_000_000, "no text blocks the process");
});

test("splits a long text into pieces within the limit, losing only white space", () => {
  fc.assert(
    fc.property(markdown, fc.integer({ min: 8, max: 200 }), (source, limit) => {
      const whole = richTextOf(source);
      const pieces = splitRichText(whole, limit);
      for (const piece of pieces) {
        assert.ok(piece.text.length <= limit && piece.text !== "");
        assert.ok(piece.text.isWellFormed(), "no character is split");
        assertSound(piece);
      }
      assert.equal(withoutSpace(pieces.map(({ text }) => text).join("")), withoutSpace(whole.text));
    }),
  );
});

test("splits a text at paragraphs, lines, sentences and words", () => {
  const cut = (text: string, limit: number): string[] =>
    splitRichText({ text, ranges: [] }, limit).map((piece) => piece.text);
  assert.deepEqual(cut("one two.\n\nthree four", 14), ["one two.", "three four"]);
  assert.deepEqual(cut("one two\nthree four", 14), ["one two", "three four"]);
  assert.deepEqual(cut("One two. Three four", 14), ["One two.", "Three four"]);
  assert.deepEqual(cut("one two three four", 14), ["one two three", "four"]);
  assert.deepEqual(cut("😀😀😀", 3), ["😀", "😀", "😀"]);
});

test("reopens a split code block with its language and keeps its indentation", () => {
  const code = Array.from({ length: 30 }, (_, line) => `    line ${line}`).join("\n");
  const pieces = splitRichText(richTextOf(`\`\`\`py\n${code}\n\`\`\``), 100);
  assert.ok(pieces.length > 3);
  for (const piece of pieces)
    assert.match(htmlOf(piece), /^<pre><code class="language-py"> {4}line[^<]*<\/code><\/pre>$/);
  assert.equal(pieces.map(({ text }) => text).join("\n"), code);
});
