// The dictionary of log fields and its page.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { lineFields, logFields } from "../src/log-fields.ts";

test("documents every field of log lines, and no other", () => {
  const page = readFileSync(new URL("../../../docs/observability.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| `(\w+)` +\| (.*?) +\|$/gm)].map(([, name = "", text = ""]) => [name, text]);
  assert.deepEqual(Object.fromEntries(rows), { ...lineFields, ...logFields });
});
