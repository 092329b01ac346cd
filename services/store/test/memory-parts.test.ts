// The pure parts of memory: chunks, line authors, words, the fusion of two rankings.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { authorAt, linesOf } from "@parley/contracts";
import fc from "fast-check";
import { leastTrusted, lineAuthors } from "../src/memory/authors.ts";
import { chunksOf } from "../src/memory/chunk.ts";
import { boostOf, fuse } from "../src/memory/rank-fusion.ts";
import { audienceOf, scopesOf } from "../src/memory/scope.ts";
import { searchable } from "../src/memory/normalize.ts";
import { packed, pointing, signsOf, unpacked, vectorOf } from "../src/memory/vectors.ts";

describe("chunks", () => {
  const line = fc.oneof(
    fc.constant(""),
    fc.constant("# A heading"),
    fc.string({ maxLength: 80 }),
    fc.string({ minLength: 100, maxLength: 5_000 }),
  );
  const text = fc.array(line, { maxLength: 60 }).map((lines) => lines.join("\n").replaceAll("\r", ""));

  test("property: every word of a text is in a chunk with the right line numbers", () => {
    fc.assert(
      fc.property(text, (whole) => {
        const lines = linesOf(whole);
        const chunks = chunksOf(whole);
        for (const { text: part, fromLine, toLine } of chunks) {
          assert.ok(part.length <= 2_000 + 1, `a chunk of ${part.length} characters`);
          const standing = lines.slice(fromLine - 1, toLine).join("\n");
          assert.ok(standing.includes(part), "the chunk differs from its lines");
        }
        for (const [index, content] of lines.entries()) {
          if (content.trim() === "" || content.length > 1_000) continue;
          const holds = chunks.some(
            (chunk) => chunk.fromLine <= index + 1 && chunk.toLine >= index + 1 && chunk.text.includes(content.trim()),
          );
          assert.ok(holds, `line ${index + 1} is in no chunk`);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("a text is cut between paragraphs, and a chunk begins with the end of the previous one", () => {
    const paragraph = (name: string) => `${name} ${"words and more ".repeat(50)}\nlast line of ${name}`;
    const whole = ["one", "two", "three"].map(paragraph).join("\n\n");
    const chunks = chunksOf(whole);
    assert.deepEqual(
      chunks.map(({ fromLine, toLine }) => [fromLine, toLine]),
      [
        [1, 5],
        [5, 8],
      ],
    );
    assert.ok(chunks[1]?.text.startsWith("last line of two\n\nthree"));
  });

  test("untrusted lines never share a chunk with other lines", () => {
    const kinds = ["ours", "ours", "untrusted", "ours"];
    const chunks = chunksOf("a\nb\nevil\nc", (index) => kinds[index] ?? "");
    assert.deepEqual(
      chunks.map((chunk) => chunk.text),
      ["a\nb", "evil", "c"],
    );
  });

  test("a line longer than a chunk is cut between words, and its parts have the same line number", () => {
    const long = Array.from({ length: 1_000 }, (_, index) => `w${index}d`).join(" ");
    const chunks = chunksOf(`short\n${long}`);
    assert.ok(chunks.length >= 3);
    assert.deepEqual([chunks[0]?.fromLine, chunks[0]?.toLine], [1, 2]);
    assert.ok(chunks.slice(1).every(({ fromLine, toLine }) => fromLine === 2 && toLine === 2));
    for (const { text: piece } of chunks) assert.match(piece.trim(), /^(?:short\n)?w\d+d(?: w\d+d)*$/);
  });

  test("an empty text has no chunks", () => {
    assert.deepEqual(chunksOf(" \n\n\t\n"), []);
  });
});

describe("line authors", () => {
  test("a line keeps its author through later versions and at new positions", () => {
    const first = { text: "mine\n", authors: lineAuthors(undefined, "mine\n", "owner") };
    const second = { text: "evil\nmine\n", authors: lineAuthors(first, "evil\nmine\n", "untrusted") };
    const third = lineAuthors(second, "mine\nmore\nevil\n", "agent");
    assert.deepEqual(
      [0, 1, 2].map((index) => authorAt(third, index)),
      ["owner", "agent", "untrusted"],
    );
  });

  test("a person who saves the unchanged text marks it as trusted, and the agent does not", () => {
    const evil = { text: "evil", authors: lineAuthors(undefined, "evil", "untrusted") };
    assert.equal(authorAt(lineAuthors(evil, "evil", "owner"), 0), "owner");
    assert.equal(authorAt(lineAuthors(evil, "evil", "agent"), 0), "untrusted");
    assert.equal(authorAt(lineAuthors(evil, "evil\nnew", "owner"), 0), "untrusted");
  });

  test("an untrusted copy of a trusted line is untrusted", () => {
    const ours = { text: "same", authors: lineAuthors(undefined, "same", "owner") };
    const authors = lineAuthors(ours, "same\nsame", "untrusted");
    assert.deepEqual([authorAt(authors, 0), authorAt(authors, 1)], ["owner", "untrusted"]);
  });

  test("every line has one letter, and a line of unknown author is untrusted", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (before, after) => {
        const known = { text: before, authors: lineAuthors(undefined, before, "owner") };
        assert.equal(lineAuthors(known, after, "agent").length, linesOf(after).length);
      }),
    );
    assert.equal(authorAt("o", 5), "untrusted");
    assert.equal(leastTrusted(["owner", "untrusted", "agent"]), "untrusted");
    assert.equal(leastTrusted([]), "agent");
  });
});

describe("words", () => {
  test("accents, joined words and scripts without spaces match", () => {
    assert.equal(searchable("Zoë's café"), "Zoe's cafe");
    assert.equal(searchable("and/or src\\main a_b|c"), "and or src main a b c");
    assert.equal(searchable("東京都に"), " 東京 京都 都に ");
    assert.equal(searchable("й ё"), "й ё");
    assert.equal(searchable("a\0b\ud800"), "a b\ufffd");
  });
});

describe("ranking", () => {
  const words = [
    { id: 1, score: 9, share: 0.9 },
    { id: 2, score: 8, share: 0.4 },
    { id: 3, score: 7, share: 0.3 },
  ];

  test("fuse keeps the full-text order without vectors", () => {
    assert.deepEqual(
      fuse(words, undefined).map(({ id, score }) => [id, score]),
      [
        [1, 0.9],
        [2, 0.4],
        [3, 0.3],
      ],
    );
  });

  // design: 001.24
  test("fuse prefers hits of both rankings to the best hit of one", () => {
    const near = [
      { id: 7, cosine: 0.95 },
      { id: 3, cosine: 0.8 },
      { id: 2, cosine: -0.2 },
    ];
    const fused = fuse(words, near);
    assert.deepEqual(
      fused
        .slice(0, 2)
        .map(({ id }) => id)
        .sort((one, other) => one - other),
      [2, 3],
    );
    assert.equal(fused.find(({ id }) => id === 7)?.score, 0.95);
    assert.equal(fused.find(({ id }) => id === 2)?.score, 0.4);
  });

  test("boostOf is neutral by default, halves in thirty days, and needs a date", () => {
    const now = Date.parse("2026-03-31");
    const none = { recency_weight: 0, importance_weight: 0 };
    assert.equal(boostOf({ path: "MEMORY.md", day: "2026-03-31" }, none, now), 1);
    const both = { recency_weight: 0.5, importance_weight: 0.2 };
    assert.equal(boostOf({ path: "memory/a.md", day: "2026-03-31" }, both, now), 1.5);
    assert.equal(boostOf({ path: "memory/a.md", day: "2026-03-01" }, both, now), 1.25);
    assert.equal(boostOf({ path: "memory/a.md", day: null }, both, now), 1);
    assert.equal(boostOf({ path: "MEMORY.md", day: null }, both, now), 1.2);
  });

  test("vectorOf ignores incomplete trailing bytes", () => {
    const bytes = Buffer.alloc(9);
    bytes.writeFloatLE(0.5, 0);
    bytes.writeFloatLE(-2, 4);
    assert.deepEqual([...vectorOf(bytes.toString("base64"))], [0.5, -2]);
  });

  test("a stored vector is unchanged and compared by direction", () => {
    const floats = fc.array(fc.float({ noNaN: true }), { maxLength: 20 }).map((values) => Float32Array.from(values));
    fc.assert(fc.property(floats, (vector) => assert.deepEqual(unpacked(packed(vector)), vector)));
    assert.deepEqual(pointing(Float32Array.of(3, 4)), Float32Array.of(0.6, 0.8));
    assert.deepEqual(pointing(Float32Array.of(0, 0)), Float32Array.of(0, 0));
  });

  test("signsOf has one bit per component, set if negative", () => {
    assert.equal(signsOf(Float32Array.of(1, -1, 0, -0, -1e-30)), "01011");
  });
});

describe("audiences", () => {
  const sender = { channel: "irc", account: "main", conversation: "c", contact: { id: "7" }, origin: "user" } as const;

  test("the owner reads the notes, another person their own messages, and a group nothing", () => {
    const owner = audienceOf("owner", [{ ...sender, role: "owner" }]);
    assert.deepEqual(scopesOf(owner, true), ["notes", "said:owner"]);
    assert.deepEqual(scopesOf(owner, false), ["notes"]);
    const guest = audienceOf("guest", [{ ...sender, role: "guest" }]);
    assert.deepEqual(scopesOf(guest, true), ['said:["irc","main","7"]']);
    assert.deepEqual(scopesOf(guest, false), []);
    assert.equal(audienceOf("owner", [{ ...sender, role: "owner", direct: false }]).kind, "none");
    assert.equal(audienceOf("guest", [{ ...sender, role: "guest", direct: false }]).kind, "none");
  });

  test("webhooks, turns of several people and turns without input read nothing", () => {
    const guest = { ...sender, role: "guest" } as const;
    assert.equal(audienceOf("webhook", [guest]).kind, "none");
    assert.equal(audienceOf("guest", [guest, { ...guest, contact: { id: "8" } }]).kind, "none");
    assert.equal(audienceOf("owner", []).kind, "none");
  });
});
