// docs/seeds.md says of each row of the five designs what became of it; whatever file and test it names has to exist.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseSettings } from "@parley/chassis";

const root = join(import.meta.dirname, "..");
const states = new Set(["implemented", "partly", "deliberately not", "not yet"]);

interface Row {
  mechanism: string;
  state: string;
  where: string;
  tests: string;
  remark: string;
}

const rows = readFileSync(join(root, "docs/seeds.md"), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| ") && !/^\| (?:mechanism|-)/.test(line))
  .map((line): Row => {
    const [mechanism = "", state = "", where = "", tests = "", remark = ""] = line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll("\\|", "|"));
    return { mechanism, state, where, tests, remark };
  });

test("every row has a state, what is implemented names its test, and what is not says why", () => {
  assert.ok(rows.length > 200);
  for (const { mechanism, state, tests, remark } of rows) {
    assert.ok(states.has(state), `${mechanism}: ${state}`);
    if (state === "implemented") assert.notEqual(tests, "", mechanism);
    if (state === "partly" || state === "deliberately not") assert.notEqual(remark, "", mechanism);
  }
});

test("every file that is named exists", () => {
  for (const { mechanism, where } of rows) {
    for (const [, path = ""] of where.matchAll(/`([^`]+)`/g))
      assert.ok(existsSync(join(root, path)), `${mechanism}: ${path}`);
  }
});

test("every test that is named stands in its file", () => {
  let named = 0;
  for (const { mechanism, tests } of rows) {
    for (const [, path = "", name = ""] of tests.matchAll(/`([^`]+\.test\.ts)` “([^”]+)”/g)) {
      const text = readFileSync(join(root, path), "utf8");
      assert.ok(text.includes(name), `${mechanism}: ${path} has no test “${name}”`);
      named += 1;
    }
  }
  assert.ok(named > 250, `${named} tests are named`);
});

test("the examples of docs/configuration.md are settings", () => {
  const text = readFileSync(join(root, "docs/configuration.md"), "utf8");
  const examples = [...text.matchAll(/```toml\n(.*?)```/gs)].map((match) => match[1] ?? "");
  assert.ok(examples.length > 0);
  for (const example of examples) assert.doesNotThrow(() => parseSettings(example, "docs/configuration.md"));
});
