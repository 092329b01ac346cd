// The choice of test files that share a process.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { bundlePureTests } from "../src/pure-tests.ts";

const root = mkdtempSync(join(tmpdir(), "parley-pure-"));
const folder = join(root, "test");
mkdirSync(folder);
after(() => rmSync(root, { recursive: true, force: true }));

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

test("bundles a file only if its imports start no process and it changes no process state", () => {
  file("helper.ts", 'import { spawn } from "node:child_process";');
  const pure = [
    file("a.test.ts", 'import { test } from "node:test";\nimport { words } from "./words.ts";\n'),
    file("b.test.ts", 'import type { Helper } from "./helper.ts";\n'),
  ];
  const others = [
    file("process.test.ts", 'import { helper } from "./helper.ts";\n'),
    file("late.test.ts", 'const late = await import("./helper.ts");\n'),
    file("server.test.ts", 'import {\n  Cleanup,\n} from "@parley/testing";\n'),
    file("hooks.test.ts", 'import {\n  after,\n  test,\n} from "node:test";\n'),
    file("environment.test.ts", 'process.env["A"] = "b";\n'),
    file("timers.test.ts", "context.mock.timers.enable();\n"),
  ];
  const [bundle = "", ...rest] = bundlePureTests([...pure, ...others], `${root}/`, root);
  assert.deepEqual(rest, others);
  const imported = readFileSync(bundle, "utf8").matchAll(/import "file:\/\/([^"]+)";/g);
  assert.deepEqual(
    [...imported].map((match) => match[1]),
    pure,
  );
});
