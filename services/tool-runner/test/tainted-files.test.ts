// Taint records of files, across replicas, process instances, commands and rewinds.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import fc from "fast-check";
import { resultOf, stopped } from "../src/calls/outcomes.ts";
import { withTaint } from "../src/calls/taint-guard.ts";
import { failure, success, type ToolOutput } from "../src/tool/tool.ts";
import { TaintedFiles } from "../src/workspace/tainted-files.ts";
import { openWorkspace, type Workspace } from "../src/workspace/workspace.ts";
import { makeDeep, skipDeep } from "./support/deep-folders.ts";

let base: string;
let root: string;
let state: string;
let workspace: Workspace;
let files: TaintedFiles;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "parley-taint-"));
  [root, state] = [join(base, "workspace"), join(base, "state")];
  workspace = await openWorkspace(root);
  files = new TaintedFiles(state, workspace.root, "one");
});
afterEach(async () => {
  await workspace[Symbol.asyncDispose]();
  await rm(base, { recursive: true, force: true });
});

/** A tool that opens the paths and, with `content`, writes it to each. */
async function call(
  name: string,
  effects: ("reads_files" | "writes_files" | "reads_untrusted")[],
  paths: string[],
  { tainted = false, content, fails = false }: { tainted?: boolean; content?: string; fails?: boolean } = {},
): Promise<ToolOutput> {
  return withTaint(files, { descriptor: { name, effects }, workspace, tainted }, async (ground) => {
    for (const path of paths) {
      await using place = await ground.workspace.resolve(path, { createParents: true });
      if (content !== undefined) await writeFile(join(root, place.relative), content);
    }
    return fails ? failure("no") : success("shown");
  });
}
const read = (path: string) => call("read", ["reads_files"], [path]);
const write = (path: string, tainted: boolean) => call("write", ["writes_files"], [path], { tainted, content: "x" });

test("marks a result as untrusted when it shows a file that a tainted call wrote", async () => {
  await write("notes/a.txt", true);
  const shown = await read("notes/a.txt");
  assert.equal(shown.untrusted, true);
  assert.match(shown.content, /^\[untrusted [^]*shown[^]*end of untrusted/);
  assert.equal((await read("notes")).untrusted, true);
  await write("b.txt", false);
  assert.equal((await read("b.txt")).untrusted, undefined);
});

test("is visible to another replica", async () => {
  await write("a.txt", true);
  assert.equal(await new TaintedFiles(state, workspace.root, "two").any(), true);
});

test("ends a record when an untainted call writes the whole file, not when it edits it", async () => {
  await write("a.txt", true);
  await call("edit", ["reads_files", "writes_files"], ["a.txt"], { content: "y" });
  assert.equal((await read("a.txt")).untrusted, true);
  await write("a.txt", false);
  assert.equal((await read("a.txt")).untrusted, undefined);
});

test("ends a record when the file was deleted and created again", async () => {
  await write("a.txt", true);
  await unlink(join(root, "a.txt"));
  assert.equal(await files.any(), false);
  await writeFile(join(root, "a.txt"), "new");
  assert.equal((await read("a.txt")).untrusted, undefined);
});

test("keeps the record when another call checks the file before it is written", async () => {
  const descriptor = { name: "write", effects: ["writes_files" as const] };
  await withTaint(files, { descriptor, workspace, tainted: true }, async (ground) => {
    await using place = await ground.workspace.resolve("a.txt");
    assert.equal(await files.any(), false);
    await writeFile(join(root, place.relative), "x");
    return success("written");
  });
  assert.equal((await read("a.txt")).untrusted, true);
});

test("records nothing when the tainted call failed", async () => {
  await writeFile(join(root, "a.txt"), "clean");
  await call("edit", ["reads_files", "writes_files"], ["a.txt"], { tainted: true, fails: true });
  assert.equal((await read("a.txt")).untrusted, undefined);
});

test("keeps the records of files that a failed tainted call has written", async () => {
  await writeFile(join(root, "a.txt"), "clean");
  const effects: ("reads_files" | "writes_files")[] = ["reads_files", "writes_files"];
  await call("apply_patch", effects, ["a.txt", "new.txt"], { tainted: true, content: "untrusted", fails: true });
  assert.equal((await read("a.txt")).untrusted, true);
  assert.equal((await read("new.txt")).untrusted, true);
  await call("apply_patch", effects, ["missing.txt"], { tainted: true, fails: true });
  await writeFile(join(root, "missing.txt"), "clean");
  assert.equal((await read("missing.txt")).untrusted, undefined);
});

test("taints what a tool saves from untrusted content when the turn is untainted", async () => {
  await call("save_attachment", ["writes_files", "reads_untrusted"], ["in.txt"], { content: "x" });
  assert.equal((await read("in.txt")).untrusted, true);
});

test("taints a file again when a rewind restores an earlier content", async () => {
  await write("a.txt", true);
  await write("a.txt", false);
  await files.restored("a.txt");
  assert.equal((await read("a.txt")).untrusted, true);
});

test("taints files that a command changed or moved, and all changes while it runs", async () => {
  await write("a.txt", true);
  await mkdir(join(root, "clean"));
  await write("clean/b.txt", false);
  // A change just before the start counts as the command's, because file system timestamps lag.
  const { ctimeMs } = await stat(join(root, "clean/b.txt"));
  while (Date.now() - 110 <= ctimeMs) await setImmediate();
  const command = await files.begin();
  await writeFile(join(root, "made.txt"), "x");
  assert.equal((await read("made.txt")).untrusted, true);
  await rename(join(root, "a.txt"), join(root, "moved.txt"));
  await command.end();
  for (const path of ["made.txt", "moved.txt"]) assert.equal((await read(path)).untrusted, true, path);
  assert.equal((await read("clean/b.txt")).untrusted, undefined);
});

test("records what a command changed when its replica restarts after a crash", async () => {
  await files.begin();
  await writeFile(join(root, "made.txt"), "x");
  const other = new TaintedFiles(state, workspace.root, "two");
  await other.recover();
  assert.equal(await other.any(), true);
  const again = new TaintedFiles(state, workspace.root, "one");
  await again.recover();
  assert.equal(await again.has("made.txt", null), true);
});

const exec = (run: () => Promise<void>) =>
  withTaint(files, { descriptor: { name: "exec", effects: ["executes"] }, workspace, tainted: true }, async () => {
    await run();
    return success("shown");
  });
/** Names of the commands that count as running. */
const running = () => readdir(join(state, "taint"), { recursive: true }).then((all) => all.filter(isCommand));
const isCommand = (name: string) => /commands\/.+/.test(name);

test(
  "keeps the output of a command, and its record open, when it leaves a path that is too long to read",
  { skip: skipDeep },
  async () => {
    const deep = join(root, "deep");
    try {
      const output = await exec(async () => {
        await mkdir(deep);
        await makeDeep(deep, 140, "x");
      });
      assert.equal(output.content, "shown");
      for (let n = 0; n < 2; n += 1) assert.equal((await exec(async () => undefined)).untrusted, true);
      assert.equal((await running()).length, 1);
      files = new TaintedFiles(state, workspace.root, "one");
      await files.recover();
      assert.equal((await running()).length, 1);
    } finally {
      await promisify(execFile)("rm", ["-rf", deep]);
    }
    await exec(async () => undefined);
    assert.deepEqual(await running(), []);
  },
);

test(
  "records files with names that are not UTF-8 or with long paths when a command made them",
  { skip: skipDeep },
  async () => {
    const deep = join(root, "deep");
    const odd = Buffer.concat([Buffer.from(`${root}/odd`), Buffer.from([0xff])]);
    try {
      await exec(() => writeFile(odd, "x"));
      assert.deepEqual(await running(), []);
      assert.equal(await files.any(), true);
      assert.equal((await call("ls", ["reads_files"], ["."])).untrusted, true);
      await unlink(odd);
      assert.equal(await files.any(), false);
      await exec(async () => {
        await mkdir(deep);
        await makeDeep(deep, 40, "x");
      });
      assert.deepEqual(await running(), []);
      assert.equal(await files.any(), true);
    } finally {
      await promisify(execFile)("rm", ["-rf", deep]);
    }
    assert.equal(await files.any(), false);
  },
);

/** As a user to whom file permissions apply. */
async function asOrdinaryUser(work: () => Promise<void>): Promise<void> {
  const before = process.geteuid?.();
  if (before === 0) {
    await promisify(execFile)("chown", ["-R", "65534", base]);
    process.seteuid?.(65_534);
  }
  try {
    await work();
  } finally {
    if (before === 0) process.seteuid?.(0);
  }
}

test("keeps the record open when a command leaves a directory that cannot be read", async () => {
  const [before, made] = [join(root, "before"), join(root, "made")];
  await mkdir(before);
  await asOrdinaryUser(async () => {
    await chmod(before, 0);
    const { ctimeMs } = await stat(before);
    while (Date.now() - 110 <= ctimeMs) await setImmediate();
    await exec(async () => undefined);
    assert.deepEqual(await running(), [], "an unreadable directory that the command did not change");
    await exec(async () => {
      await mkdir(made);
      await writeFile(join(made, "a.txt"), "x");
      await chmod(made, 0);
    });
    assert.equal((await running()).length, 1);
    await chmod(made, 0o700);
    assert.equal((await read("made/a.txt")).untrusted, true);
    await exec(async () => undefined);
    assert.deepEqual(await running(), []);
    assert.equal((await read("made/a.txt")).untrusted, true);
    await chmod(made, 0);
    assert.equal((await exec(async () => undefined)).content, "shown");
  });
});

test("keeps the untrusted mark of a result when its call was stopped", () => {
  const request = { callId: "1", tool: "exec", timeoutMs: 1_000, maxResultBytes: 1_000 } as Parameters<
    typeof resultOf
  >[0];
  const output: ToolOutput = { ...success("part"), untrusted: true };
  assert.equal(resultOf(request, stopped(request, "deadline", output)).untrusted, true);
  assert.equal(resultOf(request, stopped(request, "drain", output)).untrusted, true);
  assert.equal(resultOf(request, stopped(request, "cancelled", output)).untrusted, true);
});

test("property: is tainted exactly when the last decisive call was tainted", async () => {
  const path = fc.constantFrom("a.txt", "b/a.txt", "b/c.txt");
  const act = fc.record({ path, kind: fc.constantFrom("write", "edit"), tainted: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 12 }), async (acts) => {
      await rm(state, { recursive: true, force: true });
      await rm(join(root, "a.txt"), { force: true });
      await rm(join(root, "b"), { recursive: true, force: true });
      const expected = new Map<string, boolean>();
      for (const { path: at, kind, tainted } of acts) {
        if (kind === "edit" && !expected.has(at)) continue;
        const effects = kind === "write" ? (["writes_files"] as const) : (["reads_files", "writes_files"] as const);
        await call(kind, [...effects], [at], { tainted, content: "x" });
        expected.set(at, tainted || (kind === "edit" && expected.get(at) === true));
      }
      for (const [at, tainted] of expected) assert.equal((await read(at)).untrusted === true, tainted, at);
    }),
    { numRuns: 60 },
  );
});
