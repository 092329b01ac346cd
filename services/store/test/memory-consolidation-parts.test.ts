// New material for memory, its size per call, and edits by line numbers: pure.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { linesOf } from "@parley/contracts";
import fc from "fast-check";
import { editLines } from "../src/memory/edit-lines.ts";
import {
  noteCandidate,
  packInput,
  withoutEmpty,
  type Candidate,
  type NoteState,
} from "../src/memory/consolidation-input.ts";

const note = (state: Partial<NoteState> & { text: string }) =>
  noteCandidate({
    path: "memory/2026-11-20.md",
    date: "2026-11-20",
    version: 3,
    authors: "a".repeat(linesOf(state.text).length),
    before: undefined,
    partLine: 0,
    ...state,
  });
const numbers = (state: Parameters<typeof note>[0]) => note(state).lines.map(({ number }) => number);

describe("new lines of a note", () => {
  test("are the lines that the earlier text does not contain, at any position", () => {
    assert.deepEqual(numbers({ text: "# Day\n\n- one\n- two\n", before: "# Day\n\n- two\n" }), [3]);
    assert.deepEqual(numbers({ text: "- two\n- one\n", before: "- one\n- two\n" }), []);
    assert.deepEqual(numbers({ text: "- one\n- one\n", before: "- one\n" }), [2], "a repeated line is new");
  });

  test("exclude untrusted lines", () => {
    assert.deepEqual(numbers({ text: "- one\n- theirs\n- two\n", authors: "aua" }), [1, 3]);
    assert.deepEqual(numbers({ text: "- one\n- theirs\n", authors: "a" }), [1], "also lines of unknown author");
  });

  test("are empty when only a heading is left", () => {
    assert.deepEqual(numbers({ text: "# Day\n\n- theirs\n", authors: "aau" }), []);
  });

  test("continue after the last line of a partial step", () => {
    assert.deepEqual(numbers({ text: "- one\n- two\n- three\n", partLine: 2 }), [3]);
  });
});

/** A day of a conversation with this many relevant messages, followed by an irrelevant one. */
const day = (session: number, seq: number, count: number): Candidate => {
  const sessionId = `00000000-0000-7000-8000-00000000000${session}`;
  const upTo = (to: number) => ({ kind: "conversation" as const, sessionId, seq: to });
  const lines = Array.from({ length: count }, (_, n) => ({ number: seq + n, text: "word" }));
  return { place: `sessions/${sessionId}`, date: "2026-11-20", lines, whole: upTo(seq + count), upTo };
};

describe("a source without relevant lines", () => {
  test("is done immediately unless an open source of its place precedes it, and nothing is lost", () => {
    const days = fc.array(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 0, max: 2 })), { maxLength: 20 });
    fc.assert(
      fc.property(days, (drawn) => {
        const candidates = drawn.map(([session, count], n) => day(session, n * 10 + 1, count));
        const { full, over } = withoutEmpty(candidates);
        const waiting = candidates.filter(({ lines }) => lines.length > 0);
        assert.deepEqual(
          full.filter(({ lines }) => lines.length > 0),
          waiting,
        );
        assert.equal(full.length + over.length, candidates.length);
        for (const step of over) {
          assert.ok(step.kind === "conversation");
          for (const { place, lines } of waiting) {
            if (place === `sessions/${step.sessionId}`)
              assert.ok((lines[0]?.number ?? 0) > step.seq, "the line would be skipped");
          }
        }
      }),
    );
  });

  test("never makes a call return more progress entries than the limit", () => {
    const candidates = [day(1, 1, 1), ...Array.from({ length: 5_000 }, (_, n) => day(1, 10 + n, 0))];
    const { full, over } = withoutEmpty(candidates);
    assert.equal(over.length, 0);
    assert.ok(packInput(full, 10_000).progress.length <= 2_000);
  });
});

describe("one call", () => {
  const notes = fc.array(
    fc.array(
      fc.string({ minLength: 1, maxLength: 30 }).filter((line) => line.trim() !== "" && !/[\r\n#]/.test(line)),
      { maxLength: 6 },
    ),
    { minLength: 1, maxLength: 6 },
  );

  test("property: repeated calls cover every line exactly once, for any call size", () => {
    fc.assert(
      fc.property(notes, fc.integer({ min: 1, max: 60 }), (texts, maxChars) => {
        const states = texts.map((lines, index) => ({
          path: `memory/2026-11-0${index + 1}.md`,
          text: lines.map((line) => `${line}\n`).join(""),
          done: false,
          partLine: 0,
        }));
        const seen: string[] = [];
        for (let calls = 0; states.some(({ done }) => !done); calls++) {
          assert.ok(calls <= 50, "every call makes progress");
          const open = states.filter(({ done }) => !done);
          const { sources, progress } = packInput(
            open.map((state) => note(state)),
            maxChars,
          );
          for (const { place, lines } of sources) seen.push(...lines.map(({ number }) => `${place}:${number}`));
          for (const step of progress) {
            const state = states.find(({ path }) => step.kind === "note" && path === step.path);
            assert.ok(state !== undefined && step.kind === "note");
            if (step.toLine === null) state.done = true;
            else state.partLine = step.toLine;
          }
        }
        const all = states.flatMap(({ path, text }) => linesOf(text).map((_, index) => `${path}:${index + 1}`));
        assert.deepEqual(seen, all);
      }),
    );
  });

  test("stays within its size limit, except for a single longer line", () => {
    const { sources } = packInput([note({ text: `${"x".repeat(50)}\n${"y".repeat(50)}\n` })], 10);
    assert.deepEqual(
      sources.map(({ lines }) => lines.length),
      [1],
    );
  });
});

describe("an edit", () => {
  const before = { text: "# Memory\n- a\n- theirs\n- b\n", authors: "oauo" };
  const edit = (remove: { from: number; to: number }[], add: { after: number; text: string }[], maxChars = 1_000) =>
    editLines(before, { remove, add, maxChars });

  test("removes and adds lines by the numbers of the original text", () => {
    assert.deepEqual(
      edit(
        [{ from: 2, to: 2 }],
        [
          { after: 2, text: "- A" },
          { after: 4, text: "- c" },
        ],
      ),
      {
        text: "# Memory\n- A\n- theirs\n- b\n- c\n",
      },
    );
    assert.deepEqual(edit([], [{ after: 0, text: "top" }]), { text: "top\n# Memory\n- a\n- theirs\n- b\n" });
    assert.deepEqual(
      editLines({ text: "", authors: "" }, { remove: [], add: [{ after: 0, text: "- a" }], maxChars: 9 }),
      {
        text: "- a\n",
      },
    );
  });

  test("keeps withheld lines", () => {
    const refused = edit([{ from: 2, to: 4 }], []);
    assert.match("problem" in refused ? refused.problem : "", /line 3 was withheld/);
  });

  test("is refused when its lines do not exist", () => {
    assert.ok("problem" in edit([{ from: 4, to: 5 }], []));
    assert.ok("problem" in edit([{ from: 3, to: 2 }], []));
    assert.ok("problem" in edit([], [{ after: 5, text: "x" }]));
  });

  test("may only shorten a text that is too long", () => {
    assert.ok("problem" in edit([], [{ after: 0, text: "more" }], 10));
    assert.deepEqual(edit([{ from: 2, to: 2 }], [], 10), { text: "# Memory\n- theirs\n- b\n" });
  });

  test("keeps every line that it does not name", () => {
    const line = fc.string({ maxLength: 8 }).map((text) => text.replaceAll(/[\r\n]/g, " "));
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 12 }), fc.nat(11), fc.nat(11), (lines, one, other) => {
        const from = Math.min(one, other, lines.length - 1) + 1;
        const to = Math.min(Math.max(one, other), lines.length - 1) + 1;
        const text = lines.map((each) => `${each}\n`).join("");
        const written = { text, authors: "a".repeat(linesOf(text).length) };
        const done = editLines(written, {
          remove: [{ from, to }],
          add: [{ after: from, text: "new" }],
          maxChars: 1_000,
        });
        assert.ok("text" in done);
        const kept = [...lines.slice(0, from - 1), "new", ...lines.slice(to)];
        assert.equal(done.text, kept.map((each) => `${each}\n`).join(""));
      }),
    );
  });
});
