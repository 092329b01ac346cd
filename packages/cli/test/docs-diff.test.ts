// The choice of versions and the output of `parley docs diff`, without a cluster.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { DocumentMeta } from "@parley/contracts";
import { applyPatch } from "diff";
import fc from "fast-check";

import { paintDiff, unifiedDiff, versionsOf } from "../src/docs/diff.ts";

const meta = (version: number, rest: Partial<DocumentMeta> = {}): DocumentMeta => ({
  path: "MEMORY.md",
  version,
  change: version,
  sha256: `of ${version}`,
  bytes: 1,
  deleted: false,
  author: "owner",
  turnId: null,
  restoredFrom: null,
  createdAt: "2026-11-22T05:00:00.000Z",
  ...rest,
});

const side = (version: number, content: string, rest: Partial<DocumentMeta> = {}) => ({
  ...meta(version, rest),
  content,
});

test("selects the last change by default, and changes since or by a version with one number", () => {
  const of = (from?: number, to?: number) => versionsOf({ from, to }, 7);
  assert.deepEqual(of(), { from: 6, to: 7 });
  assert.deepEqual(of(3), { from: 3, to: 7 });
  assert.deepEqual(of(undefined, 4), { from: 3, to: 4 });
  assert.deepEqual(of(2, 4), { from: 2, to: 4 });
  assert.deepEqual(versionsOf({ from: undefined, to: undefined }, 1), { from: 0, to: 1 });
});

test("names both versions of a diff, and uses /dev/null for a missing one", () => {
  const agent = side(2, "tea\nmilk\n", { author: "agent" });
  assert.equal(
    unifiedDiff("MEMORY.md", side(1, "tea\n"), agent),
    [
      "--- MEMORY.md\tversion 1, owner, 2026-11-22T05:00:00.000Z",
      "+++ MEMORY.md\tversion 2, agent, 2026-11-22T05:00:00.000Z",
      "@@ -1,1 +1,2 @@",
      " tea",
      "+milk",
      "",
    ].join("\n"),
  );
  assert.match(
    unifiedDiff("MEMORY.md", null, side(1, "tea\n")) ?? "",
    /^--- \/dev\/null\tno version\n\+\+\+ MEMORY\.md/,
  );
  const removed = unifiedDiff("MEMORY.md", agent, side(3, "", { deleted: true })) ?? "";
  assert.match(removed, /^\+\+\+ \/dev\/null\tversion 3 \(removed\)/m);
  assert.equal(unifiedDiff("MEMORY.md", agent, side(3, "tea\nmilk\n")), "");
});

test("produces a diff that turns the older text into the newer one byte for byte", () => {
  const text = fc
    .array(fc.constantFrom("", "a", "b", "- c", "@@ d", "e\r", "--- f", "+g"), { maxLength: 12 })
    .map((lines) => lines.join("\n"));
  fc.assert(
    fc.property(text, text, (before, after) => {
      const patch = unifiedDiff("MEMORY.md", side(1, before), side(2, after));
      if (before === after) return patch === "";
      return patch !== null && applyPatch(before, patch, { autoConvertLineEndings: false }) === after;
    }),
  );
});

test("colours only body lines as added or removed, for any line start", () => {
  const patch = unifiedDiff("MEMORY.md", side(1, "-- a\n"), side(2, "++ b\n")) ?? "";
  const painted = paintDiff(patch, (format, line) => `<${String(format)}>${line}`).split("\n");
  assert.deepEqual(
    painted.map((line) => /^<(\w+)>/.exec(line)?.[1] ?? ""),
    ["bold", "bold", "cyan", "red", "green", ""],
  );
});
