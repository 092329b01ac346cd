import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";

import type { LengthUnit, TextFormat, TextLimits } from "@parley/contracts";
import { lengthOf } from "../src/channels/text/measure.ts";
import { AnswerParts } from "../src/channels/text/parts.ts";
import { render, withSpoilers, withUrls, type RangeFormat } from "../src/channels/text/render.ts";
import { parseMarkdown, richTextOf, type RichText } from "../src/channels/text/rich-text.ts";
import { propertyRuns } from "@parley/testing/property-runs";
import { partsOf } from "./support/parts.ts";

const html = (markdown: string): string => rendered(markdown, "inline_html");
const rendered = (markdown: string, format: RangeFormat): string => render(richTextOf(markdown), format).text;

const limits = (maxLength: number, more: Partial<TextLimits> = {}): TextLimits => ({
  format: "inline_html",
  maxLength,
  lengthUnit: "utf16",
  lengthCountsMarkup: false,
  ...more,
});

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
        "||",
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

test("renders Markdown as HTML tags of ranges", () => {
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

test("shows a definition of a link when nothing refers to it", () => {
  assert.equal(html("[Note]: done"), "[Note]: done");
  assert.equal(
    html("Sources:\n\n[1]: https://a.example/\n[2]: /b"),
    "Sources:\n\n[1]: https://a.example/\n[2]: /b".replace(
      "https://a.example/",
      '<a href="https://a.example/">https://a.example/</a>',
    ),
  );
  assert.equal(html("see [it][1]\n\n[1]: https://a.example/"), 'see <a href="https://a.example/">it</a>');
  const [page] = partsOf(limits(1_000, { format: "html" }), "a\n\n[Note]: done\n[b]: c\n\n[b]");
  assert.equal(page?.replaceAll(/\s/g, ""), '<p>a</p><p>[Note]:done</p><p><ahref="c">b</a></p>');
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

test("turns marked spoilers into ranges, except in code, across other ranges and in loose bars", () => {
  const spoilers = (source: string) => {
    const { text, ranges } = withSpoilers(withUrls(richTextOf(source)));
    return [text, ...ranges.map(({ type, start, end }) => `${type}:${text.slice(start, end)}`)];
  };
  assert.deepEqual(spoilers("a ||b [c](https://d.e)|| f"), ["a b c (https://d.e) f", "spoiler:b c (https://d.e)"]);
  assert.deepEqual(spoilers("**||b||** ||*i*||"), ["b i", "bold:b", "spoiler:b", "spoiler:i", "italic:i"]);
  assert.deepEqual(spoilers("`a||b||` x || y || z"), ["a||b|| x || y || z", "code:a||b||"]);
  assert.deepEqual(spoilers("||a **b|| c**"), ["||a b|| c", "bold:b|| c"]);
  const before = process.cpuUsage();
  withSpoilers(richTextOf("||a ".repeat(20_000)));
  assert.ok(process.cpuUsage(before).user < 2_000_000, "no text blocks the process");
});

test("renders the markup of chat platforms and escapes what they require", () => {
  const source = "**b** _i_ ~~s~~ `c` [x & y](https://a.b)\n\n> q\n> r\n\n```ts\nlet a < b;\n```";
  assert.equal(
    rendered(source, "mrkdwn"),
    "*b* _i_ ~s~ `c` <https://a.b|x &amp; y>\n\n> q\n> r\n\n```\nlet a &lt; b;\n```",
  );
  assert.equal(
    rendered(source, "single_asterisk"),
    "*b* _i_ ~s~ `c` x & y (https://a.b)\n\n> q\n> r\n\n```\nlet a < b;\n```",
  );
  assert.equal(rendered(source, "ranges"), "b i s c x & y\n\nq\nr\n\nlet a < b;");
});

/** All messages of an answer, each with its plain text. */
function messages(of: TextLimits, source: string) {
  const parts = new AnswerParts(of);
  const found: { text: string; plain: string; ranges: RichText["ranges"] }[] = [];
  for (let position: number | null = 0; position !== null;) {
    const part = parts.at("answer", source, position);
    if (part === null) break;
    found.push({ ...part.rendered, ranges: [...part.rendered.ranges] });
    assert.ok(part.next === null || part.next > position, "the position advances");
    position = part.next;
  }
  return found;
}

const units: LengthUnit[] = ["utf16", "bytes", "code_points", "sms_segments"];
const rangeFormats: RangeFormat[] = ["plain", "ranges", "inline_html", "mrkdwn", "single_asterisk", "message_styling"];

test("splits a long answer into messages within the limit in every unit, losing only white space", () => {
  const numbers = fc.integer({ min: 8, max: 200 });
  const formats = fc.constantFrom<RangeFormat>("plain", "ranges", "inline_html");
  fc.assert(
    fc.property(markdown, numbers, fc.constantFrom(...units), formats, (source, maxLength, lengthUnit, format) => {
      const of = limits(maxLength, { lengthUnit, format });
      const found = messages(of, source);
      for (const { plain, ranges } of found) {
        assert.ok(plain.trim() !== "" && lengthOf(plain, lengthUnit) <= maxLength);
        assert.ok(plain.isWellFormed(), "no character is split");
        assertSound({ text: plain, ranges });
      }
      const rich = richTextOf(source);
      const whole = format === "plain" ? withUrls(rich) : format === "ranges" ? withSpoilers(withUrls(rich)) : rich;
      assert.equal(withoutSpace(found.map(({ plain }) => plain).join("")), withoutSpace(whole.text));
    }),
  );
});

test("counts the markup where the platform counts it", () => {
  fc.assert(
    fc.property(
      markdown,
      fc.integer({ min: 40, max: 200 }),
      fc.constantFrom(...rangeFormats),
      (source, maxLength, format) => {
        for (const { text } of messages(limits(maxLength, { format, lengthCountsMarkup: true }), source)) {
          assert.ok(text.length <= maxLength, text);
        }
      },
    ),
    // A piece without room for the markup of its code block has entities.
    {
      examples: [
        [
          "\n```ts\n𐀀\n```ts\nconvallis elementum curabitur duis aliquam tempor\n> pellentesque integer ultrices",
          42,
          "inline_html",
        ],
        // Next to the markup of the code block there is room for half a character.
        ["```ts\n\u{1d79f}\u{1d7e8}\n```", 45, "inline_html"],
      ],
    },
  );
});

test("splits an answer into single lines within the limit and keeps their indentation", () => {
  const lines = limits(400, { format: "plain", lengthUnit: "bytes", singleLine: true });
  assert.deepEqual(partsOf(lines, "**Hi** [docs](https://a.b/c), <https://d.e>\n\n```ts\nlet a;\n\n  b\n```"), [
    "Hi docs (https://a.b/c), https://d.e",
    "let a;",
    "  b",
  ]);
  assert.deepEqual(partsOf({ ...lines, maxLength: 8 }, "one two three"), ["one two", "three"]);
  assert.deepEqual(partsOf({ ...lines, maxLength: 7 }, "😀😀"), ["😀", "😀"]);
  assert.deepEqual(partsOf(lines, " \n "), []);
  fc.assert(
    fc.property(markdown, fc.integer({ min: 20, max: 400 }), (source, maxLength) => {
      for (const line of partsOf({ ...lines, maxLength }, source)) {
        assert.ok(Buffer.byteLength(line) <= maxLength && line.trim() !== "" && line.isWellFormed());
        assert.doesNotMatch(line, /(?!\t)\p{Cc}/u);
      }
    }),
  );
});

test("continues an answer at a position with another limit and loses nothing", () => {
  const words = Array.from({ length: 300 }, (_, number) => `w${number}`).join(" ");
  const first = new AnswerParts(limits(100)).at("a", words, 0);
  assert.ok(first !== null && first.next !== null);
  const rest: string[] = [];
  const other = new AnswerParts(limits(250));
  for (let position: number | null = first.next; position !== null;) {
    const part = other.at("b", words, position);
    assert.ok(part);
    rest.push(part.rendered.text);
    position = part.next;
  }
  assert.equal([first.rendered.text, ...rest].join(" "), words);
});

test("splits a text at paragraphs, lines, sentences and words", () => {
  const cut = (text: string, maxLength: number): string[] => partsOf(limits(maxLength), text);
  assert.deepEqual(cut("one two.\n\nthree four", 14), ["one two.", "three four"]);
  assert.deepEqual(cut("one two\nthree four", 14), ["one two", "three four"]);
  assert.deepEqual(cut("One two. Three four", 14), ["One two.", "Three four"]);
  assert.deepEqual(cut("one two three four", 14), ["one two three", "four"]);
  assert.deepEqual(cut("😀😀😀", 3), ["😀", "😀", "😀"]);
});

test("reopens a split code block with its language and keeps its indentation", () => {
  const code = Array.from({ length: 30 }, (_, line) => `    line ${line}`).join("\n");
  const pieces = messages(limits(100), `\`\`\`py\n${code}\n\`\`\``);
  assert.ok(pieces.length > 3);
  for (const { text } of pieces) assert.match(text, /^<pre><code class="language-py"> {4}line[^<]*<\/code><\/pre>$/);
  assert.equal(pieces.map(({ plain }) => plain).join("\n"), code);
});

const source = (maxLength: number, format: TextFormat = "markdown"): TextLimits =>
  limits(maxLength, { format, lengthCountsMarkup: true });

test("splits Markdown source at its blocks, items and rows, each message valid alone", () => {
  assert.deepEqual(partsOf(source(20), "# One\n\ntwo **three**\n\nfour"), ["# One\n\ntwo **three**", "four"]);
  assert.deepEqual(partsOf(source(16), "- one two\n- three\n- four"), ["- one two", "- three\n- four"]);
  assert.deepEqual(partsOf(source(32), "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |"), [
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "| a | b |\n|---|---|\n| 3 | 4 |",
  ]);
  const code = partsOf(source(30), "```ts\nlet first = 1;\nlet second = 2;\n```");
  assert.deepEqual(code, ["```ts\nlet first = 1;\n```", "```ts\nlet second = 2;\n```"]);
  assert.deepEqual(partsOf(source(24), "some words **bold and long** end"), ["some words", "**bold and long** end"]);
});

test("splits Markdown source within the limit for any text, and code points stay whole", () => {
  fc.assert(
    fc.property(markdown, fc.integer({ min: 60, max: 300 }), (text, maxLength) => {
      for (const part of messages(source(maxLength), text)) {
        assert.ok(part.text.isWellFormed());
        assert.ok(part.text.length <= maxLength, `${part.text.length} > ${maxLength}`);
      }
    }),
  );
});

test("splits Markdown source within the limit when the first lines of a block are too long to be repeated", () => {
  const language = "a language of many words ".repeat(3).trim();
  const table = `| ${"head | ".repeat(9)}\n|${"---|".repeat(9)}\n| ${"cell | ".repeat(9)}`;
  for (const text of [`~~~~${language}`, `\`\`\`${language}\nlet one = 1;\nlet two = 2;\n\`\`\``, table]) {
    const pieces = partsOf(source(60), text);
    assert.ok(
      pieces.every((piece) => piece.length <= 60),
      JSON.stringify(pieces),
    );
    assert.equal(pieces.join("").replaceAll(/\s/g, ""), text.replaceAll(/\s/g, ""));
  }
});

test("keeps the indentation of code when a message of split Markdown continues it", () => {
  const code = ["def f():", "    for i in range(9):", "        print(i)", "        print(-i)", "    return 1"];
  const pieces = partsOf(source(70), ["```py", ...code, "```"].join("\n"));
  assert.ok(pieces.length > 1);
  assert.deepEqual(
    pieces.flatMap((piece) => piece.split("\n").slice(1, -1)),
    code,
  );
});

test("keeps each fence of split Markdown closed", () => {
  const code = Array.from({ length: 40 }, (_, line) => `line ${line}`).join("\n");
  for (const part of partsOf(source(120), `before\n\n\`\`\`py\n${code}\n\`\`\`\n\nafter`)) {
    assert.equal((part.match(/```/g) ?? []).length % 2, 0, part);
    assert.ok(parseMarkdown(part));
  }
});

test("keeps the lines of a paragraph on an HTML page, and adds none between blocks", () => {
  const text = "a\n**b**\nc\n\n- d\n  e\n  - f\n\n> g\n> h\n\n```\ni\nj\n```\n\nk  \nl";
  const [page = ""] = partsOf(source(4_000, "html"), text);
  assert.equal(
    page,
    "<p>a<br />\n<strong>b</strong><br />\nc</p>\n<ul>\n<li>d<br />\ne\n<ul>\n<li>f</li>\n</ul>\n</li>\n</ul>\n<blockquote>\n<p>g<br />\nh</p>\n</blockquote>\n<pre><code>i\nj\n</code></pre>\n<p>k<br />\nl</p>",
  );
});

test("renders HTML with headings, lists and tables, and no HTML of the model", () => {
  const [page = ""] = partsOf(source(4_000, "html"), "# T\n\n- a\n\n| x |\n|---|\n| 1 |\n\n<script>x</script>");
  assert.match(page, /<h1>T<\/h1>[^]*<li>a<\/li>[^]*<td>1<\/td>[^]*&lt;script&gt;/);
});

test("renders pictures as links in HTML, so that a mail program loads nothing", () => {
  const markdown = [
    '![a ![b](https://c.example/b)](https://c.example/?d=1&e "t")',
    "[![](http://c.example/i)](http://o.example)",
    "![r][d] <img src='http://c.example/h'>",
    "[d]: http://c.example/r",
  ];
  const [page = ""] = partsOf(source(4_000, "html"), markdown.join("\n\n"));
  assert.doesNotMatch(page, /<(?!\/?(?:p|a)[ >])/);
  assert.match(page, /<a href="https:\/\/c\.example\/\?d=1&amp;e">a b<\/a>[^]*>http:\/\/c\.example\/i<\/a>[^]*>r<\/a>/);
});

test("leaves a text with more than a thousand opening brackets unchanged instead of parsing it", () => {
  const links = (count: number) => "[a](http://b.c) ".repeat(count).trim();
  assert.equal(richTextOf(links(1_000)).ranges.length, 1_000);
  assert.deepEqual(richTextOf(links(1_001)), { text: links(1_001), ranges: [] });
});

test("counts the segments of an SMS as providers do", () => {
  for (const [text, segments] of [
    ["", 0],
    ["a".repeat(160), 1],
    ["a".repeat(161), 2],
    ["a".repeat(306), 2],
    ["a".repeat(307), 3],
    ["€".repeat(80), 1],
    ["€".repeat(81), 2],
    // An escaped character is not divided: 152 septets, then 2 in the next segment.
    [`${"a".repeat(152)}€${"a".repeat(152)}`, 3],
    ["ж".repeat(70), 1],
    ["ж".repeat(71), 2],
    ["😀".repeat(35), 1],
    ["😀".repeat(36), 2],
    // 33 pairs fit into the 67 units of a segment.
    ["😀".repeat(67), 3],
  ] as const)
    assert.equal(lengthOf(text, "sms_segments"), segments, `${text.slice(0, 3)} ${text.length}`);
});

test("writes XEP-0393 only where its rules see a span", () => {
  for (const [source, expected] of [
    ["a **bold** _italic_ ~~gone~~ `code`", "a *bold* _italic_ ~gone~ `code`"],
    ["**_both_**", "*_both_*"],
    ["in**side**", "inside"],
    ["**two\nlines**", "two\nlines"],
    ["**3 \\* 4**", "3 * 4"],
    ["> **quoted**", "> *quoted*"],
    ["```\na * b\n```", "```\na * b\n```"],
    ["[site](https://a.b)", "site (https://a.b)"],
  ] as const)
    assert.equal(rendered(source, "message_styling"), expected, source);
});

/** The text of a line without the marks that XEP-0393 sees, and what is inside marks. */
function spansOf(line: string): { plain: string; styled: string[] } {
  const styled: string[] = [];
  const parse = (text: string): string => {
    let plain = "";
    let canOpen = true;
    for (let at = 0; at < text.length; at++) {
      const mark = text.charAt(at);
      const end = /[*_~`]/.test(mark) && canOpen && /\S/.test(text.charAt(at + 1)) ? closing(text, at) : -1;
      if (end === -1) {
        plain += mark;
        canOpen = /\s/.test(mark);
        continue;
      }
      const inner = text.slice(at + 1, end);
      const content = mark === "`" ? inner : parse(inner);
      styled.push(`${mark}${content}`);
      plain += content;
      at = end;
      canOpen = false;
    }
    return plain;
  };
  return { plain: parse(line), styled };
}

/** Where the span that opens at `from` closes: at the next mark of its kind after a character other than white space. */
function closing(text: string, from: number): number {
  for (let at = from + 2; at < text.length; at++)
    if (text[at] === text[from] && /\S/.test(text.charAt(at - 1))) return at;
  return -1;
}

test("XEP-0393 shows exactly the text and the styles of an answer of styled words", () => {
  const marksOf = { "**": "*", _: "_", "~~": "~", "`": "`", "": "" } as const;
  const word = fc.record({
    text: fc.stringMatching(/^[a-z]{1,8}$/),
    mark: fc.constantFrom(...(Object.keys(marksOf) as (keyof typeof marksOf)[])),
    glued: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 12 }), (words) => {
      const spaced = words.map(({ text, mark, glued }, index) => {
        const before = index === 0 ? "" : glued && mark === "" && words[index - 1]?.mark === "" ? "" : " ";
        return `${before}${mark}${text}${mark}`;
      });
      const { plain, styled } = spansOf(rendered(spaced.join(""), "message_styling"));
      assert.equal(plain, richTextOf(spaced.join("")).text);
      assert.deepEqual(
        styled,
        words.filter(({ mark }) => mark !== "").map(({ mark, text }) => `${marksOf[mark]}${text}`),
      );
    }),
    { numRuns: propertyRuns(1_000) },
  );
});
