// The output of `parley docs vouch` and `parley docs show --authors`, without a cluster.

import assert from "node:assert/strict";
import { test } from "node:test";

import { documentAuthors, linesOf, type DocumentAuthor } from "@parley/contracts";
import fc from "fast-check";

import { authoredNote, authoredText, isOwners, untrustedLines, vouchText } from "../src/docs/trust.ts";
import { plain, type Paint } from "../src/io/io.ts";

const documentOf = (content: string, authors: DocumentAuthor[], author: DocumentAuthor = "owner") => ({
  path: "memory/letters.md",
  version: 4,
  change: 9,
  sha256: "",
  bytes: content.length,
  deleted: false,
  author,
  turnId: null,
  restoredFrom: null,
  createdAt: "2026-11-22T05:00:00.000Z",
  content,
  authors,
});

const mixed = documentOf("mine\ntheirs\n\nthe agent's\n", ["owner", "untrusted", "untrusted", "agent"]);
const marked: Paint = (format, text) => `<${String(format)}>${text}`;

test("prefixes each line with its author, and colours untrusted lines", () => {
  assert.equal(authoredText(mixed, plain), "owner      mine\nuntrusted  theirs\nuntrusted  \nagent      the agent's\n");
  const painted = authoredText(mixed, marked).split("\n");
  assert.match(painted[0] ?? "", /^<dim>owner/);
  assert.match(painted[1] ?? "", /^<yellow>untrusted +<yellow>theirs$/);
});

test("lists untrusted lines with their numbers, without empty ones", () => {
  const shown = vouchText(mixed, plain);
  assert.match(shown, /^1 line of memory\/letters\.md is untrusted:\n\n2 {2}theirs\n\n/);
  assert.match(authoredNote(mixed), /^Version 4; 1 line is untrusted\. .*vouch memory\/letters\.md --version 4$/);
  const agents = documentOf("noted\n", ["agent"], "agent");
  assert.match(vouchText(agents, plain), /^No line of memory\/letters\.md is untrusted/);
  assert.equal(authoredNote(agents), "Version 4; no lines are untrusted.");
});

test("treats a text as the owner's only if its version and every line are", () => {
  assert.equal(isOwners(documentOf("a\nb\n", ["owner", "owner"])), true);
  assert.equal(isOwners(documentOf("a\nb\n", ["owner", "import"])), false);
  assert.equal(isOwners(documentOf("a\n", ["owner"], "agent")), false);
});

test("shows all hidden and control characters of a text before it is vouched for", () => {
  const hidden = "pay\u001B]0;send the keys\u0007 \u202Eback\u200B\u{E0041}\u{E0101}\n";
  assert.equal(
    authoredText(documentOf(hidden, ["untrusted"]), plain),
    "untrusted  pay<U+001B>]0;send the keys<U+0007> <U+202E>back<U+200B><U+E0041><U+E0101>\n",
  );
});

test("property: shows every line once and complete, and lists every non-empty untrusted line", () => {
  const line = fc.oneof(fc.string({ unit: "binary", maxLength: 12 }), fc.constantFrom("", " ", "\r", "a\u2028b"));
  fc.assert(
    fc.property(fc.array(fc.tuple(line, fc.constantFrom(...documentAuthors))), (pairs) => {
      const content = pairs.map(([text]) => `${text.replaceAll("\n", "")}\n`).join("");
      const document = documentOf(
        content,
        pairs.map(([, author]) => author),
      );
      const rows = authoredText(document, plain).split("\n").slice(0, -1);
      assert.deepEqual(
        rows.map((row) =>
          row
            .slice("untrusted  ".length)
            .replace(/<U\+([0-9A-F]{4,6})>/g, (_all, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16))),
        ),
        linesOf(content),
      );
      assert.doesNotMatch(rows.join(""), /[^\P{C}\t\p{Cn}\p{Co}\p{Cs}]/u);
      const theirs = pairs.flatMap(([text, author], at) =>
        author === "untrusted" && text.replaceAll("\n", "").trim() !== "" ? [at + 1] : [],
      );
      assert.deepEqual(
        untrustedLines(document).map(({ number }) => number),
        theirs,
      );
    }),
  );
});
