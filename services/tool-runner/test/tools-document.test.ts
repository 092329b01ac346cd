// docs/tools.md, and what it promises of every tool.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { describedTools, toolsDocument } from "../src/docs/tools-document.ts";

test("docs/tools.md is what the tools say of themselves", () => {
  const written = readFileSync(new URL("../../../docs/tools.md", import.meta.url), "utf8");
  assert.equal(written, toolsDocument(), "stale: run npm run docs");
});

test("every tool has one to three examples, and each of them is accepted by the tool's schema", () => {
  for (const { descriptor, args } of describedTools()) {
    const { name, examples = [] } = descriptor;
    assert.ok(examples.length >= 1 && examples.length <= 3, `${name} has ${examples.length} examples`);
    for (const example of examples) {
      assert.ok(args !== undefined, name);
      const { error } = args.safeParse(example);
      assert.equal(error, undefined, `${name} refuses ${JSON.stringify(example)}`);
    }
  }
});

test("every argument of every tool is explained", () => {
  const rows = toolsDocument()
    .split("\n")
    .filter((line) => /^\| `\w+` \|/.test(line));
  assert.ok(rows.length > 30);
  for (const row of rows) assert.doesNotMatch(row, /\|\s*\|$/, row);
});
