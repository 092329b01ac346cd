// The distribution of test files over processes.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { z } from "zod";

import { writeTestProcesses } from "../src/test-processes.ts";

const root = mkdtempSync(join(tmpdir(), "parley-test-processes-"));
after(() => rmSync(root, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const path = join(root, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

/** The files of each process, in order. */
function distribute(files: readonly string[]): string[][] {
  return writeTestProcesses(files, `${root}/`, root).map((path) => {
    return [...readFileSync(path, "utf8").matchAll(/"file:\/\/([^"]+)"/g)].map((match) => match[1] ?? "");
  });
}

test("gives a file a process of its own when it or its helpers change the process", () => {
  file("services/store/test/helper.ts", 'process.chdir("/");');
  const shared = [
    file("services/store/test/a.test.ts", 'import { words } from "./words.ts";\nconst path = process.env["PATH"];\n'),
    file("services/store/test/b.test.ts", 'import type { Helper } from "./helper.ts";\n'),
  ];
  const alone = [
    file("services/store/test/helped.test.ts", 'import { helper } from "./helper.ts";\n'),
    file("services/store/test/late.test.ts", 'const late = await import("./helper.ts");\n'),
    file("services/store/test/environment.test.ts", 'process.env["A"] = "b";\n'),
    file("services/store/test/variable.test.ts", "process.env.A ??= 'b';\n"),
    file("services/store/test/assigned.test.ts", "Object.assign(process.env, { A: 'b' });\n"),
    file("services/store/test/timers.test.ts", "context.mock.timers.enable();\n"),
  ];
  const processes = distribute([...alone, ...shared]);
  assert.deepEqual(processes, [shared, ...alone.map((path) => [path])]);
});

test("starts the process with the slowest file first and mixes no packages", () => {
  const slow = file("test/chaos/chaos.test.ts", "");
  const files = [file("packages/bus/test/a.test.ts", ""), file("packages/kit/test/a.test.ts", ""), slow];
  const processes = distribute(files);
  assert.deepEqual(processes[0], [slow]);
  assert.equal(processes.length, 3);
});

test("fails a process that a test file ends before the files after it have run", () => {
  const name = (each: string) => `services/agent-core/test/${each}.test.ts`;
  const passing = file(name("a"), 'import { test } from "node:test";\ntest("passes", () => {});\n');
  const ending = file(
    name("b"),
    'import { test } from "node:test";\nimport { end } from "../src/end.ts";\ntest("ends", end);\n',
  );
  const last = file(name("c"), 'import { test } from "node:test";\ntest("is not run", () => {});\n');
  file("services/agent-core/src/end.ts", "export const end = () => process.exit(0);\n");
  const run = (files: readonly string[]) => {
    const [program = ""] = writeTestProcesses(files, `${root}/`, root);
    // Not a child of this test run.
    const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
    return spawnSync(process.execPath, ["--test", program], { encoding: "utf8", env });
  };
  assert.equal(run([passing, last]).status, 0);
  const { status, stdout, stderr } = run([passing, ending, last]);
  assert.equal(status, 1);
  assert.match(stdout + stderr, /ended the process before all files had run/);
});

test("fails a process that does not end after its last test, and names what keeps it running", () => {
  const open = file(
    "services/agent-core/test/open.test.ts",
    'import { test } from "node:test";\ntest("passes", () => { setTimeout(() => {}, 600_000); });\n',
  );
  const [program = ""] = writeTestProcesses([open], `${root}/`, root, 50);
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--test", program], { encoding: "utf8", env });
  assert.equal(status, 1);
  assert.match(stdout + stderr, /still running 0\.05 s after the last test: .*Timeout/);
});

test("records the CPU time of each file when PARLEY_TEST_TIMES names a file", () => {
  const files = ["a", "b"].map((name) =>
    file(`packages/kit/test/${name}.test.ts`, 'import { test } from "node:test";\ntest("passes", () => {});\n'),
  );
  const [program = ""] = writeTestProcesses(files, `${root}/`, root);
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
  const times = join(root, "times");
  const run = spawnSync(process.execPath, ["--test", program], { env: { ...env, PARLEY_TEST_TIMES: times } });
  assert.equal(run.status, 0);
  const records = readFileSync(times, "utf8").trimEnd().split("\n");
  const Times = z.strictObject({ name: z.string(), cpu: z.number().min(0).max(60), elapsed: z.number().min(0) });
  assert.deepEqual(
    records.map((line) => Times.parse(JSON.parse(line)).name),
    ["packages/kit/test/a.test.ts", "packages/kit/test/b.test.ts"],
  );
});

test("prints the options of npm test and runs no test when help is asked for", () => {
  const program = fileURLToPath(new URL("../src/test.ts", import.meta.url));
  const args = ["--conditions=@parley/source", program, "packages/kit/test/text.test.ts", "--help"];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  assert.match(stdout, /^npm test -- \[options\] \[files\] /);
  assert.deepEqual([status, stderr], [0, ""]);
});

test("finds the browser that PARLEY_CHROMIUM names, or one on the PATH, or none", () => {
  const module = new URL("../src/test-peers.ts", import.meta.url).href;
  const script = `const { findChromium } = await import(${JSON.stringify(module)}); console.log(String(findChromium()));`;
  const find = (env: Record<string, string>) => {
    const args = ["--conditions=@parley/source", "--input-type=module", "--eval", script];
    return spawnSync(process.execPath, args, { encoding: "utf8", env }).stdout.trim();
  };
  const program = file("bin/chromium", "#!/bin/sh\n");
  chmodSync(program, 0o755);
  assert.equal(find({ PATH: dirname(program), PARLEY_CHROMIUM: "/opt/browser" }), "/opt/browser");
  assert.equal(find({ PATH: dirname(program) }), program);
  assert.equal(find({ PATH: join(root, "nothing") }), "null");
});
