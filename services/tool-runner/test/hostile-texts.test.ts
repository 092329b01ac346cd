// Work on hostile texts: it is linear, outside the main thread, and ended by a deadline.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import * as fc from "fast-check";
import { SecretMask } from "../src/sandbox/secrets.ts";
import { applyHunks } from "../src/text/patch/apply.ts";
import { parsePatch } from "../src/text/patch/parse.ts";
import { runOnText, TextJobError } from "../src/text/text-worker.ts";
import { applyPatchTool } from "../src/tools/apply-patch.ts";
import { editTool } from "../src/tools/edit.ts";
import { notebookEditTool } from "../src/tools/notebook-edit.ts";
import { readTool } from "../src/tools/read.ts";
import { replaceText } from "../src/text/replace-text.ts";
import { makeWorkspaceFixture } from "./support/workspace-fixture.ts";

const signal = new AbortController().signal;
/** Generous for a busy machine; the defects took from 10 s to hours. */
const boundMs = 30_000;
/** How long work may block the event loop, in milliseconds of CPU time. */
const heldMs = 1_000;

/** The most CPU time that this thread used between two ticks of a timer: other processes do not count. */
async function held(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let before = process.threadCpuUsage();
  const tick = () => {
    const { user } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    longest = Math.max(longest, user / 1_000);
  };
  const timer = setInterval(tick, 10);
  await work();
  clearInterval(timer);
  tick();
  return longest;
}

function hunkPatch(lines: readonly string[]): string {
  return ["*** Begin Patch", "*** Update File: long.txt", ...lines, "*** End Patch"].join("\n");
}

test(
  "patches within the time limit when a hunk nearly matches at millions of places",
  { timeout: boundMs },
  async () => {
    await using ground = await makeWorkspaceFixture();
    await writeFile(join(ground.inside, "long.txt"), "a\n".repeat(4_500_000));
    const lines = ["@@", ...Array.from({ length: 400 }, () => "-a"), "-b", "+c"];
    const ms = await held(async () => {
      const result = await ground.call(applyPatchTool, { patch: hunkPatch(lines) });
      assert.match(result.content, /^Nothing was changed\. "long.txt", hunk 1 of 1 .*were not found in the file/);
    });
    assert.ok(ms < heldMs, `the event loop was blocked for ${ms} ms`);
  },
);

test("refuses a patch with too many hunks or too large files in total", async () => {
  await using ground = await makeWorkspaceFixture();
  const many = await ground.call(applyPatchTool, {
    patch: hunkPatch(Array.from({ length: 1_001 }, () => "@@\n-a\n+b")),
  });
  assert.equal(many.content, "A patch may have at most 1000 hunks; this one has 1001. Split it.");
  const names = Array.from({ length: 8 }, (_, n) => `${n}.txt`);
  for (const name of names) await writeFile(join(ground.inside, name), "a".repeat(9_000_000));
  const deletions = names.map((name) => `*** Delete File: ${name}`);
  const large = await ground.call(applyPatchTool, {
    patch: ["*** Begin Patch", ...deletions, "*** End Patch"].join("\n"),
  });
  assert.match(large.content, /Nothing was changed\..*more than 67108864 bytes in total/);
});

const edits: Record<string, { text: string; oldText: string; newText: string; says: RegExp; all?: boolean }> = {
  "the passage is on every line": {
    text: "a\n".repeat(5_000_000),
    oldText: "a",
    newText: "b",
    says: /occurs 5000000 times in "long.txt" \(lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 …\)/,
  },
  "the passage overlaps itself everywhere": {
    text: "a".repeat(10_000_000),
    oldText: "a".repeat(100_000),
    newText: "b",
    says: /occurs 9900001 times/,
  },
  "the passage differs in its middle": {
    text: "a".repeat(10_000_000),
    oldText: `${"a".repeat(100_000)}b${"a".repeat(100_000)}`,
    newText: "b",
    says: /occurs 0 times/,
  },
  "the result would not fit the memory": {
    text: "a".repeat(10_000_000),
    oldText: "a",
    newText: "b".repeat(100_000),
    all: true,
    says: /would have 1000000000000 characters/,
  },
};

for (const [what, { text, oldText, newText, says, all = false }] of Object.entries(edits)) {
  test(`edits within the time limit when ${what}`, { timeout: boundMs }, async () => {
    await using ground = await makeWorkspaceFixture();
    await writeFile(join(ground.inside, "long.txt"), text);
    const ms = await held(async () => {
      const result = await ground.call(editTool, {
        path: "long.txt",
        old_text: oldText,
        new_text: newText,
        replace_all: all,
      });
      assert.match(result.content, says);
      assert.equal(result.isError, true);
    });
    assert.ok(ms < heldMs, `the event loop was blocked for ${ms} ms`);
    assert.equal((await readFile(join(ground.inside, "long.txt"))).length, text.length);
  });
}

test("changes and shows a large notebook without blocking the event loop", { timeout: boundMs }, async () => {
  await using ground = await makeWorkspaceFixture();
  const cells = Array.from({ length: 60_000 }, () => ({ cell_type: "code", metadata: {}, source: [], outputs: [] }));
  await writeFile(join(ground.inside, "long.ipynb"), JSON.stringify({ nbformat: 4, nbformat_minor: 4, cells }));
  const ms = await held(async () => {
    const changed = await ground.call(notebookEditTool, { path: "long.ipynb", cell_number: 60_000, new_source: "x" });
    assert.equal(changed.isError, false, changed.content);
    const shown = await ground.call(readTool, { path: "long.ipynb", limit: 3 });
    assert.match(shown.content, /cell 1: code/);
  });
  assert.ok(ms < heldMs, `the event loop was blocked for ${ms} ms`);
});

test("ends a job at its deadline with an error", async () => {
  const command = `rm ${"$(".repeat(400_000)}`;
  await assert.rejects(runOnText("predict", { command, directory: "." }, signal, 50), TextJobError);
  const after = await runOnText("predict", { command: `rm ${"a ".repeat(10_000)}`, directory: "." }, signal);
  assert.equal(after.length, 10_000);
});

test("ends a job when the call is cancelled", async () => {
  const control = new AbortController();
  const work = runOnText("predict", { command: `rm ${"$(".repeat(400_000)}`, directory: "." }, control.signal);
  control.abort(new Error("cancelled"));
  await assert.rejects(work, /cancelled/);
});

test("masks every value in one pass over the output when one value is everywhere", { timeout: boundMs }, () => {
  const values = Array.from({ length: 40 }, (_, n): [string, string] => [`S${n}`, `absent-value-${n}`]);
  const mask = new SecretMask(new Map([["A", "secret"], ...values]));
  const shown = mask.push(Buffer.from("secret".repeat(1_000_000)));
  assert.equal(Buffer.concat([shown, mask.end()]).toString(), "***".repeat(1_000_000));
});

/** The engine's own search, which is correct but may be slow. */
function occurrences(text: string, sought: string): number[] {
  return Array.from({ length: text.length }, (_, at) => at).filter((at) => text.startsWith(sought, at));
}

test("finds the same passages as a plain search", () => {
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "\n", "é", "😀"), maxLength: 60 });
  const passage = fc.string({ unit: fc.constantFrom("a", "b", "\n", "é", "😀"), minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(letters, passage, fc.string({ maxLength: 3 }), (text, oldText, newText) => {
      const places = occurrences(text, oldText);
      const one = replaceText(text, oldText, newText, false);
      assert.equal(one.status, places.length === 0 ? "missing" : places.length === 1 ? "replaced" : "ambiguous");
      if (one.status === "ambiguous") assert.equal(one.count, places.length);
      const all = replaceText(text, oldText, newText, true);
      if (all.status === "replaced") assert.equal(all.text, text.split(oldText).join(newText));
      else assert.equal(places.length, 0);
    }),
  );
});

/** Compares the kept and removed lines at each position. */
test("finds a hunk at the same place as a plain search, with any trailing white space", () => {
  const line = fc.stringMatching(/^[ab ]{0,3}$/);
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), fc.array(line, { minLength: 1, maxLength: 3 }), (file, wanted) => {
      const text = file.map((each) => `${each}\n`).join("");
      const patch = hunkPatch(["@@", ...wanted.map((each) => `-${each}`)]);
      const [operation] = parsePatch(patch);
      assert.ok(operation?.kind === "update");
      const fits = (key: (each: string) => string) =>
        file.flatMap((_, at) =>
          at + wanted.length <= file.length && wanted.every((each, n) => key(each) === key(file[at + n] ?? ""))
            ? [at]
            : [],
        );
      const levels = [
        fits((each) => each),
        fits((each) => each.trimEnd()),
        fits((each) => each.trim().replaceAll(/\s+/g, " ")),
      ];
      const places = levels.find((found) => found.length > 0) ?? [];
      const apply = () => applyHunks(text, operation.hunks, "long.txt");
      if (places.length !== 1) assert.throws(apply, places.length === 0 ? /were not found/ : /occur at \d+ places/);
      else
        assert.equal(
          apply(),
          file
            .toSpliced(places[0] ?? 0, wanted.length)
            .map((each) => `${each}\n`)
            .join(""),
        );
    }),
  );
});
