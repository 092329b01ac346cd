// Every hook event that a configuration may name is asked about somewhere: one that nobody fires would be silence with a name.
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
  test(`the hooks of ${event} are asked`, () => assert.ok(fired.has(event)));
}
