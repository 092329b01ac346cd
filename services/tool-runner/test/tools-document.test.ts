// docs/tools.md, and what it promises of every tool.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { toolsDocument } from "../src/docs/tools-document.ts";

test("docs/tools.md is what the tools say of themselves", () => {
  const written = readFileSync(new URL("../../../docs/tools.md", import.meta.url), "utf8");
  assert.equal(written, toolsDocument(), "stale: run npm run docs");
});

test("every argument of every tool is explained", () => {
  const rows = toolsDocument()
    .split("\n")
    .filter((line) => /^\| `\w+` \|/.test(line));
  assert.ok(rows.length > 30);
  for (const row of rows) assert.doesNotMatch(row, /\|\s*\|$/, row);
});
