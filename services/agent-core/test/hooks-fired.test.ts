// Every configurable hook event is fired somewhere in the code.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { hookEvents } from "@parley/contracts";

const sources = new URL("../src/", import.meta.url);
const code = readdirSync(sources, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => readFileSync(new URL(file, sources), "utf8"));
const fired = new Set(
  code.flatMap((text) => [...text.matchAll(/runHooks\(\s*"(\w+)"/g)].map(([, event = ""]) => event)),
);

for (const event of hookEvents) {
  // design: 003.23
  test(`fires the hooks of ${event}`, () => assert.ok(fired.has(event)));
}
