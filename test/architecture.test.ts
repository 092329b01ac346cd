// docs/architecture.md is the map of the code: each path in it exists, and it stays short.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";

const root = resolve(import.meta.dirname, "..");
const text = readFileSync(join(root, "docs/architecture.md"), "utf8");

test("names only files and folders that exist", () => {
  const missing: string[] = [];
  let named = 0;
  for (const line of text.split("\n")) {
    let folder = "";
    for (const [, name = ""] of line.matchAll(/`([\w./-]+)`/g)) {
      if (/^(?:services|packages|infra|test|presets)\//.test(name)) {
        named += 1;
        folder = name.endsWith(".ts") ? dirname(name) : name;
        if (!existsSync(join(root, name))) missing.push(name);
      } else if (name.endsWith(".ts") && folder !== "") {
        named += 1;
        if (!existsSync(join(root, folder, name))) missing.push(`${folder}/${name}`);
      }
    }
  }
  assert.deepEqual(missing, []);
  assert.ok(named > 80, `${named} paths`);
});

test("has at most 150 lines, and at most 40 rows in the table of changes", () => {
  assert.ok(text.split("\n").length <= 150);
  const table = text.slice(text.indexOf("## Where a change belongs"));
  const rows = table.split("\n").filter((line) => line.startsWith("| ")).length - 1;
  assert.ok(rows <= 40, `${rows} rows`);
});
