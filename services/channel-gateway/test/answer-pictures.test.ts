// Pictures in answers for OpenAI clients, judged by the HTML that a Markdown client would make of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { micromark } from "micromark";
import { gfm, gfmHtml } from "micromark-extension-gfm";
import { propertyRuns } from "@parley/testing/property-runs";
import { StreamedPictures, withoutPictures } from "../src/http/answer-pictures.ts";

/** What a client that also shows raw HTML makes of Markdown. */
const html = (markdown: string) =>
  micromark(markdown, { extensions: [gfm()], htmlExtensions: [gfmHtml()], allowDangerousHtml: true });
const loads = (markdown: string) => /<(?:img|iframe|source|style|link)\b/i.test(html(markdown));

async function streamed(pieces: readonly string[]): Promise<string[]> {
  const pictures = new StreamedPictures();
  const shown = pieces.map((piece) => pictures.add(piece));
  return [...shown, await pictures.end()];
}

test("makes links of pictures in every spelling", async () => {
  for (const [markdown, expected] of [
    ["see ![a](http://c.example/?d=1) there", "see [a](http://c.example/?d=1) there"],
    ["![a][b]\n\n[b]: http://c.example", "[a][b]\n\n[b]: http://c.example"],
    ["![b]\n\n[b]: http://c.example", "[b]\n\n[b]: http://c.example"],
    ["![a ![b](//c.example/2)](//c.example/1)", "[a [b](//c.example/2)](//c.example/1)"],
    ["<p>\n```\n\n![a](http://c.example)", "<p>\n```\n\n[a](http://c.example)"],
    ["hey!![a](//c.example)", "hey! [a](//c.example)"],
    ["x <IMG src='http://c.example'>", "x &lt;IMG src='http://c.example'>"],
    ["<div>\n<img src=x>\n</div>", "<div>\n&lt;img src=x>\n</div>"],
  ] as const) {
    assert.ok(loads(markdown), markdown);
    assert.equal(await withoutPictures(markdown), expected);
  }
});

test("keeps code, `data:` pictures and text that loads nothing", async () => {
  for (const kept of [
    "```rust\nlet a = vec![1, 2];\n```\n\n```md\n![a](http://b.c)\n```",
    "`![a](http://b.c)` and `<img>`",
    "    <img src=x>",
    "![dot](data:image/png;base64,AAAA)",
    "wow! [a](http://b.c) <br> 1 < 2",
    "vec![1] outside of code",
  ])
    assert.equal(await withoutPictures(kept), kept);
});

test("streams up to the first picture and the rest at the end", async () => {
  const pieces = ["Hello", " you!", " And ", "!", "[a](http://c.example)", " more"];
  assert.deepEqual(await streamed(pieces), ["Hello", " you", "! And ", "", "", "", "[a](http://c.example) more"]);
  assert.deepEqual(await streamed(["a <", "im", "g src=x> b"]), ["a ", "", "", "&lt;img src=x> b"]);
  assert.deepEqual(await streamed(["1 <", " 2"]), ["1 ", "< 2", ""]);
});

test("loads nothing for any text, and streams the same text", async () => {
  const bits = fc.constantFrom(
    ..."![,!,[,](,http://c.example,),],\n\n,\n,```,`,<img ,>,<div>,    ,- ,[b]: //c.example,a,\\,> ,![a](//c.example),![b],<!--,-->".split(
      ",",
    ),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(bits, { maxLength: 24 }), async (pieces) => {
      const whole = await withoutPictures(pieces.join(""));
      assert.ok(!loads(whole), JSON.stringify([pieces.join(""), whole]));
      assert.equal((await streamed(pieces)).join(""), whole);
    }),
    { numRuns: propertyRuns(20_000), examples: [[["!", "![", "<img "]]] },
  );
});
