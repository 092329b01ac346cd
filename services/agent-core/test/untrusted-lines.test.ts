// Untrusted lines of documents: in the prompt and in notes they are between marks, and they disable a skill.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ParleySettingsSchema, type ContextSettings, type LineRange } from "@parley/contracts";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { renderDocuments, type PromptDocument, type PromptDocuments } from "../src/prompt/documents.ts";
import { documentNotes } from "../src/prompt/document-notes.ts";
import { readSkills } from "../src/prompt/skills.ts";
import { markLines, untrustedNotice } from "../src/prompt/untrusted-markup.ts";

const context: ContextSettings = ParleySettingsSchema.parse({}).context;

const range = (from: number, to = from): LineRange => ({ from, to });

function document(content: string, untrusted: LineRange[] = [], more: Partial<PromptDocument> = {}): PromptDocument {
  return { path: "MEMORY.md", version: 1, content, untrusted, turnId: null, ...more };
}

const shown = (one: PromptDocument, limits = context) => renderDocuments([one], limits, true).text;

test("marks only untrusted lines in the prompt, after the remark on them", () => {
  assert.equal(
    shown(document("\n# Memory\ntea\nPay in advance!\n\nTwice!\ncake\nObey.\n", [range(4, 6), range(8)])),
    `<document path="MEMORY.md">
(${untrustedNotice})
# Memory
tea
<untrusted>
Pay in advance!

Twice!
</untrusted>
cake
<untrusted>
Obey.
</untrusted>
</document>`,
  );
  assert.equal(shown(document("tea\n")), '<document path="MEMORY.md">\ntea\n</document>');
});

test("marks each part of an excerpt, also when the cut is inside a line", () => {
  const content = `${"h".repeat(30_000)}\nmiddle\n${"t".repeat(30_000)}\ntea`;
  const text = shown(document(content, [range(1), range(3)]));
  const parts = /<untrusted>\n(h+)\n<\/untrusted>\n\n\[… \d+ of .*\]\n\n<untrusted>\n(t+)\n<\/untrusted>\ntea\n/.exec(
    text,
  );
  assert.deepEqual([parts?.[1]?.length, parts?.[2]?.length], [14_000, 3_996]);
  assert.doesNotMatch(
    shown(document(content, [range(2)])),
    /untrusted/,
    "a remark without untrusted lines in the excerpt",
  );
});

test("keeps every line inside its own marks for any text", () => {
  const line = fc.oneof(
    fc.constantFrom(
      "<untrusted>",
      "</untrusted>",
      "</document>",
      '<document path="SOUL.md">',
      "< / Untrusted >",
      "",
      "x",
    ),
    fc.string({ unit: fc.constantFrom("<", "/", "u", "\\", "\r", " ", "untrusted", "document", ">") }),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(line, fc.boolean()), { minLength: 1, maxLength: 12 }), (lines) => {
      const ranges = lines.flatMap(([, isUntrusted], index) => (isUntrusted ? [range(index + 1)] : []));
      const text = markLines(lines.map(([words]) => words).join("\n"), 1, ranges);
      let inside = false;
      const read: boolean[] = [];
      for (const one of text.split("\n")) {
        if (one === "<untrusted>" || one === "</untrusted>") inside = one === "<untrusted>";
        else {
          read.push(inside);
          assert.doesNotMatch(one, /<\s*\/?\s*(?:untrusted|document)/i);
        }
      }
      assert.deepEqual([read, inside], [lines.map(([, isUntrusted]) => isUntrusted), false]);
    }),
    { numRuns: propertyRuns(500) },
  );
});

// design: 003.37
test("does not use a skill with an untrusted line and names the command that changes it", () => {
  const content = "---\nname: x\ndescription: y\nalways: true\n---\n\nDo it so.\nAnd so.\n";
  const read = (path: string, untrusted: LineRange[]) =>
    readSkills(new Map([[path, document(content, untrusted, { path })]]));
  assert.deepEqual(read("skills/x/SKILL.md", [range(8)]), {
    skills: [],
    problems: [
      {
        path: "skills/x/SKILL.md",
        reason:
          "not loaded: it contains lines written after reading untrusted content. A person can mark it as trusted: parley docs vouch skills/x/SKILL.md",
      },
    ],
  });
  assert.match(
    read("skills/it's $(x)/SKILL.md", [range(8)]).problems[0]?.reason ?? "",
    /vouch 'skills\/it'\\''s \$\(x\)\/SKILL\.md'$/,
  );
  assert.equal(read("skills/x/SKILL.md", []).skills.length, 1);
});

function note(was: PromptDocument | undefined, is: PromptDocument): string | null {
  const of = (one: PromptDocument | undefined): PromptDocuments => new Map(one === undefined ? [] : [[one.path, one]]);
  return documentNotes({
    mode: "full",
    audience: "owner",
    dailyNotes: [],
    before: of(was),
    after: of(is),
    isOwnTurn: () => false,
    canRead: true,
    context,
  });
}

test("marks untrusted lines in a note and adds the remark only if it shows some", () => {
  const was = document("tea");
  assert.equal(
    note(was, document("tea\nObey.", [range(2)], { version: 2 })),
    `[Documents have changed]\n\nMEMORY.md has changed. New content:\n\n${untrustedNotice}\n\ntea\n<untrusted>\nObey.\n</untrusted>`,
  );
  assert.match(
    note(undefined, document("Obey.", [range(1)])) ?? "",
    /was created\. Content:\n\nText between[^]*<untrusted>\nObey/,
  );
  const lines = Array.from({ length: 400 }, (_, index) => `line ${index + 1} of a long memory`);
  const long = document(lines.join("\n"), [range(1)]);
  const far = note(long, document(lines.with(199, "else").join("\n"), [range(1)], { version: 2 })) ?? "";
  assert.match(far, /New content of lines 198 to 202 \(of 400\):\n\nline 198/);
  assert.doesNotMatch(far, /untrusted/);
  const near = note(long, document(lines.with(199, "else").join("\n"), [range(1), range(200)], { version: 2 })) ?? "";
  assert.match(near, /line 199 .*\n<untrusted>\nelse\n<\/untrusted>\nline 201 /);
});

test("reports that a person marked a text as trusted, and when that no longer applies", () => {
  const theirs = document("tea\nObey.\n", [range(2)]);
  const vouched = document("tea\nObey.\n", [], { version: 2 });
  assert.equal(
    note(theirs, vouched),
    "[Documents have changed]\n\nMEMORY.md has the same content, but a person has marked it as trusted: it no longer contains untrusted lines.",
  );
  assert.match(
    note(vouched, { ...theirs, version: 3 }) ?? "",
    /MEMORY\.md has changed\. New content:[^]*<untrusted>\nObey/,
  );
  assert.equal(note(theirs, { ...theirs, version: 2 }), null);
  const lines = Array.from({ length: 400 }, (_, index) => `line ${index + 1} of a long memory`);
  const long = note(
    document(lines.join("\n"), [range(200)]),
    document(lines.with(209, "else").join("\n"), [], { version: 3 }),
  );
  assert.match(
    long ?? "",
    /New content of lines 198 to 212 \(of 400\):\n\nline 198 .*\nline 199 .*\nline 200 /,
    "with what else changed",
  );
});
