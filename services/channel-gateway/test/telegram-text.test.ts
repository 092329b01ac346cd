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
    assert.ok(range.start >= 0 && range.start < range.end && range.end <= text.length, "a range lies in its text");
    assert.ok(range.start >= before.start, "ranges are in order");
    while (open.length > 0 && (open.at(-1)?.end ?? 0) <= range.start) open.pop();
    assert.ok(range.end <= (open.at(-1)?.end ?? text.length), "ranges are nested or apart");
    open.push(range);
    before = range;
  }
}

test("what a model writes becomes the markup Telegram knows", () => {
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

test("a table becomes a block of fixed width", () => {
  assert.equal(html("| a | bb |\n|---|---:|\n| 1 | 2 |"), "<pre>a | bb\n--+---\n1 |  2</pre>");
});

test("a link that leads nowhere outside is written out", () => {
  assert.equal(html("[see](./file.md) [js](javascript:alert)"), "see (./file.md) js (javascript:alert)");
});

test("any text becomes text with sound ranges, and none takes long", () => {
  fc.assert(fc.property(markdown, (source) => assertSound(richTextOf(source))));
  const before = process.cpuUsage();
  for (const tangle of ["*a_ ", "[", ">", "`", "a**b", "<", "![", "- "]) richTextOf(tangle.repeat(20_000));
  assert.ok(process.cpuUsage(before).user < 5_000_000, "no text holds the process up");
});

test("a long text is cut into pieces that fit, and nothing but white space is lost", () => {
  fc.assert(
    fc.property(markdown, fc.integer({ min: 8, max: 200 }), (source, limit) => {
      const whole = richTextOf(source);
      const pieces = splitRichText(whole, limit);
      for (const piece of pieces) {
        assert.ok(piece.text.length <= limit && piece.text !== "");
        assert.ok(piece.text.isWellFormed(), "no character is cut in two");
        assertSound(piece);
      }
      assert.equal(withoutSpace(pieces.map(({ text }) => text).join("")), withoutSpace(whole.text));
    }),
  );
});

test("a text is cut where a reader would pause", () => {
  const cut = (text: string, limit: number): string[] =>
    splitRichText({ text, ranges: [] }, limit).map((piece) => piece.text);
  assert.deepEqual(cut("one two.\n\nthree four", 14), ["one two.", "three four"]);
  assert.deepEqual(cut("one two\nthree four", 14), ["one two", "three four"]);
  assert.deepEqual(cut("One two. Three four", 14), ["One two.", "Three four"]);
  assert.deepEqual(cut("one two three four", 14), ["one two three", "four"]);
  assert.deepEqual(cut("😀😀😀", 3), ["😀", "😀", "😀"]);
});

test("a code block that is cut is closed and opened again with its language, its indentation kept", () => {
  const code = Array.from({ length: 30 }, (_, line) => `    line ${line}`).join("\n");
  const pieces = splitRichText(richTextOf(`\`\`\`py\n${code}\n\`\`\``), 100);
  assert.ok(pieces.length > 3);
  for (const piece of pieces)
    assert.match(htmlOf(piece), /^<pre><code class="language-py"> {4}line[^<]*<\/code><\/pre>$/);
  assert.equal(pieces.map(({ text }) => text).join("\n"), code);
});
