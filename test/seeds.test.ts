// docs/seeds.md lists the mechanisms of the five designs with the state of each. The files that it names exist, and its rows and the
// tests that show them refer to each other: a test has the ids of its rows in a comment `// design: <id>, <id>` above it.
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseSettings } from "@parley/chassis";

const root = join(import.meta.dirname, "..");
const states = new Set(["implemented", "partly", "deliberately not", "not yet"]);

interface Row {
  id: string;
  mechanism: string;
  state: string;
  where: string;
  tests: string;
  remark: string;
}

const rows = readFileSync(join(root, "docs/seeds.md"), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| ") && !/^\| (?:id|-)/.test(line))
  .map((line): Row => {
    const [id = "", mechanism = "", state = "", where = "", tests = "", remark = ""] = line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll("\\|", "|"));
    return { id, mechanism, state, where, tests, remark };
  });

test("has a state for every row, tests when implemented, and a remark when not", () => {
  assert.ok(rows.length > 200);
  for (const { mechanism, state, tests, remark } of rows) {
    assert.ok(states.has(state), `${mechanism}: ${state}`);
    if (state === "implemented") assert.notEqual(tests, "", mechanism);
    if (state === "partly" || state === "deliberately not") assert.notEqual(remark, "", mechanism);
  }
});

test("names only existing files", () => {
  for (const { mechanism, where } of rows) {
    for (const [, path = ""] of where.matchAll(/`([^`]+)`/g))
      assert.ok(existsSync(join(root, path)), `${mechanism}: ${path}`);
  }
});

test("has unique ids", () => {
  const ids = rows.map(({ id }) => id);
  assert.deepEqual(
    ids.filter((id, index) => ids.indexOf(id) !== index),
    [],
  );
});

test("matches the ids of rows with the design comments of the tests", () => {
  const named = rows.flatMap(({ id, tests }) =>
    [...tests.matchAll(/`([^`]+\.test\.ts)`/g)].map(([, path = ""]) => `${id} ${path}`),
  );
  const marked = globSync("{test,services/*/test,packages/*/test,infra/*/test}/**/*.test.ts", { cwd: root }).flatMap(
    (path) =>
      [...readFileSync(join(root, path), "utf8").matchAll(/^\s*\/\/ design: (.+)$/gm)].flatMap(([, ids = ""]) =>
        ids.split(", ").map((id) => `${id} ${path}`),
      ),
  );
  assert.deepEqual([...new Set(marked)].sort(), named.sort());
  assert.ok(named.length > 250, `${named.length} tests are named`);
});

test("contains valid settings in the examples of docs/configuration.md", () => {
  const text = readFileSync(join(root, "docs/configuration.md"), "utf8");
  const examples = [...text.matchAll(/```toml\n(.*?)```/gs)].map((match) => match[1] ?? "");
  assert.ok(examples.length > 0);
  for (const example of examples) assert.doesNotThrow(() => parseSettings(example, "docs/configuration.md"));
});
