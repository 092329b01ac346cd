// Paths cannot leave the workspace: not by names, links, pipes or races.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync, renameSync, symlinkSync, unlinkSync } from "node:fs";
import { mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { editTool } from "../src/tools/edit.ts";
import { globTool } from "../src/tools/glob.ts";
import { grepTool } from "../src/tools/grep.ts";
import { lsTool } from "../src/tools/ls.ts";
import { notebookEditTool } from "../src/tools/notebook-edit.ts";
import { readTool } from "../src/tools/read.ts";
import { writeTool } from "../src/tools/write.ts";
import { openFile } from "../src/workspace/directory-handles.ts";
import type { Workspace } from "../src/workspace/workspace.ts";
import { makeWorkspaceFixture, secret } from "./support/workspace-fixture.ts";

// design: 004.9
test("rejects paths that leave the workspace, in every tool", async () => {
  await using ground = await makeWorkspaceFixture();
  await mkdir(join(ground.inside, "a/b"), { recursive: true });
  await symlink("../outside", join(ground.inside, "up"));
  await symlink(ground.outside, join(ground.inside, "absolute"));
  await symlink("up", join(ground.inside, "chain"));
  await symlink("/etc/passwd", join(ground.inside, "passwd"));
  await symlink("../../../outside", join(ground.inside, "a/b/far"));
  const ways = [
    "../outside/secret.txt",
    "a/../../outside/secret.txt",
    "a/b/../../../outside/secret.txt",
    join(ground.outside, "secret.txt"),
    "/etc/passwd",
    `${ground.inside}/../outside/secret.txt`,
    "/workspace/../outside/secret.txt",
    `${ground.inside}-other/secret.txt`,
    "up/secret.txt",
    "absolute/secret.txt",
    "chain/secret.txt",
    "a/b/far/secret.txt",
    "passwd",
  ];
  for (const path of ways) {
    for (const [tool, args] of [
      [readTool, { path }],
      [writeTool, { path, content: "x" }],
      [editTool, { path, old_text: "secret", new_text: "x" }],
      [notebookEditTool, { path, cell_number: 1, new_source: "x" }],
      [lsTool, { path }],
      [grepTool, { path, pattern: "." }],
      [globTool, { path, pattern: "*" }],
    ] as const) {
      const output = await ground.call(tool, args);
      assert.equal(output.isError, true, `${tool.descriptor.name} ${path}: ${output.content}`);
      assert.match(output.content, /outside the workspace/);
      assert.doesNotMatch(output.content, new RegExp(secret));
    }
  }
  assert.equal(readFileSync(join(ground.outside, "secret.txt"), "utf8"), secret);
  assert.deepEqual(readdirSync(ground.outside), ["secret.txt"]);
});

test("follows links inside, including absolute ones and those made in the sandbox", async () => {
  await using ground = await makeWorkspaceFixture();
  await mkdir(join(ground.inside, "real"));
  await writeFile(join(ground.inside, "real/file.txt"), "here\n");
  await symlink("real", join(ground.inside, "relative"));
  await symlink(join(ground.inside, "real"), join(ground.inside, "absolute"));
  await symlink("/workspace/real/file.txt", join(ground.inside, "sandboxed"));
  await symlink("../relative/../real/file.txt", join(ground.inside, "real/round"));
  for (const path of [
    "relative/file.txt",
    "absolute/file.txt",
    "sandboxed",
    "real/round",
    "/workspace/real/file.txt",
  ]) {
    assert.match((await ground.call(readTool, { path })).content, /here/, path);
  }
  const written = await ground.call(writeTool, { path: "sandboxed", content: "changed\n" });
  assert.equal(written.isError, false);
  assert.equal(await readFile(join(ground.inside, "real/file.txt"), "utf8"), "changed\n");
});

test("rejects link loops, NUL bytes and overlong names without hanging", async () => {
  await using ground = await makeWorkspaceFixture();
  await symlink("loop-b", join(ground.inside, "loop-a"));
  await symlink("loop-a", join(ground.inside, "loop-b"));
  await symlink("self/self", join(ground.inside, "self"));
  for (const path of ["loop-a", "loop-a/x", "self", "self/x"]) {
    assert.match((await ground.call(readTool, { path })).content, /too many symbolic links/, path);
  }
  assert.match((await ground.call(readTool, { path: "a\0b" })).content, /NUL/);
  for (const path of ["x".repeat(300), "x/".repeat(3_000), "y".repeat(5_000)]) {
    const read = await ground.call(readTool, { path });
    const written = await ground.call(writeTool, { path, content: "" });
    assert.ok(read.isError && written.isError, path.slice(0, 10));
    assert.match(written.content, /too long|too many parts/);
  }
});

test("rejects pipes, devices and sockets without blocking", async (t) => {
  await using ground = await makeWorkspaceFixture();
  execFileSync("mkfifo", [join(ground.inside, "pipe")]);
  for (const [tool, args] of [
    [readTool, { path: "pipe" }],
    [writeTool, { path: "pipe", content: "x" }],
    [editTool, { path: "pipe", old_text: "a", new_text: "b" }],
    [grepTool, { path: "pipe", pattern: "a" }],
  ] as const) {
    assert.match((await ground.call(tool, args)).content, /named pipe/);
  }
  assert.match((await ground.call(grepTool, { pattern: "a" })).content, /No match/);
  assert.match((await ground.call(lsTool, {})).content, /other .*pipe \(a named pipe\)/);
  try {
    execFileSync("mknod", [join(ground.inside, "zero"), "c", "1", "5"], { stdio: "ignore" });
  } catch {
    t.diagnostic("creating a device needs root; skipped");
    return;
  }
  assert.match((await ground.call(readTool, { path: "zero" })).content, /a device/);
});

test("never exposes outside files while a directory is swapped for a link", async () => {
  await using ground = await makeWorkspaceFixture();
  await mkdir(join(ground.inside, "swap"));
  await writeFile(join(ground.inside, "swap/secret.txt"), "harmless\n");
  await writeFile(join(ground.inside, "note.txt"), "harmless\n");
  // Another thread swaps as fast as it can: `swap` is a directory, then a link out; `note.txt` a file, then a link out.
  const swapper = new Worker(
    `
    const { renameSync, rmSync, symlinkSync, unlinkSync } = require("node:fs");
    const { parentPort, workerData: { inside, outside } } = require("node:worker_threads");
    let going = true;
    parentPort.on("message", () => { going = false; });
    const turn = () => {
      for (let i = 0; i < 50; i++) {
        renameSync(inside + "/swap", inside + "/kept");
        // A write in between creates the directory again.
        try { symlinkSync(outside, inside + "/swap"); } catch {}
        for (let back = false; !back; ) {
          try {
            rmSync(inside + "/swap", { recursive: true, force: true });
            renameSync(inside + "/kept", inside + "/swap");
            back = true;
          } catch {}
        }
        symlinkSync(outside + "/secret.txt", inside + "/link");
        renameSync(inside + "/link", inside + "/note.txt");
      }
      if (going) setImmediate(turn); else parentPort.close();
    };
    parentPort.postMessage("going");
    turn();
    `,
    { eval: true, workerData: { inside: ground.inside, outside: ground.outside } },
  );
  await new Promise((resolve) => swapper.once("message", resolve));
  const ended = new Promise((resolve) => swapper.once("exit", resolve));
  let refused = 0;
  let done = 0;
  const until = performance.now() + 3_000;
  // On a busy machine the first swap may come later.
  while (performance.now() < until || refused === 0 || done === 0) {
    for (const [tool, args] of [
      [readTool, { path: "swap/secret.txt" }],
      [readTool, { path: "note.txt" }],
      [writeTool, { path: "swap/new.txt", content: "mine" }],
      [writeTool, { path: "note.txt", content: "harmless\n" }],
      [editTool, { path: "swap/secret.txt", old_text: "harmless", new_text: "harmless too" }],
      [lsTool, { path: "swap" }],
    ] as const) {
      const output = await ground.call(tool, args);
      assert.doesNotMatch(output.content, new RegExp(secret), tool.descriptor.name);
      if (output.isError) refused += 1;
      else done += 1;
    }
  }
  swapper.postMessage("stop");
  await ended;
  assert.ok(refused > 0 && done > 0, `both outcomes occurred: ${refused} refused, ${done} done`);
  assert.deepEqual(await readdir(ground.outside), ["secret.txt"]);
  assert.equal(await readFile(join(ground.outside, "secret.txt"), "utf8"), secret);
});

test("does not follow a link that replaced a file between lstat and open", async () => {
  await using ground = await makeWorkspaceFixture();
  await writeFile(join(ground.inside, "file.txt"), "mine");
  await using place = await ground.workspace.resolve("file.txt");
  unlinkSync(join(ground.inside, "file.txt"));
  symlinkSync(join(ground.outside, "secret.txt"), join(ground.inside, "file.txt"));
  await assert.rejects(openFile(place), /was changed/);
});

test("keeps a place in its directory when that directory is moved and replaced", async () => {
  await using ground = await makeWorkspaceFixture();
  await mkdir(join(ground.inside, "d"));
  await writeFile(join(ground.inside, "d/secret.txt"), "mine");
  await using place = await ground.workspace.resolve("d/secret.txt");
  renameSync(join(ground.inside, "d"), join(ground.inside, "e"));
  symlinkSync(ground.outside, join(ground.inside, "d"));
  const { handle } = await openFile(place);
  assert.equal(await handle.readFile("utf8"), "mine");
  await handle.close();
});

test("property: opens only inodes inside the workspace, for any path", async () => {
  await using ground = await makeWorkspaceFixture();
  await mkdir(join(ground.inside, "a/b"), { recursive: true });
  await writeFile(join(ground.inside, "a/f"), "f");
  await writeFile(join(ground.inside, "a/b/g"), "g");
  const links = {
    in: "a/b",
    out: "../outside",
    root: ".",
    dots: "a/../..",
    back: "../..",
    abs: "/etc",
    deep: "a/in/../f",
  };
  for (const [name, target] of Object.entries(links)) {
    await symlink(target, join(ground.inside, name));
    await symlink(target, join(ground.inside, "a", name));
  }
  const part = fc.oneof(
    fc.constantFrom(...Object.keys(links), "a", "b", "f", "g", ".", "..", "", "etc", "outside", "secret.txt"),
    fc.string({ maxLength: 4 }),
  );
  const root = fc.constantFrom("", "/", "/workspace/", `${ground.inside}/`);
  const insideInodes = await inodesOf(ground.workspace);
  await fc.assert(
    fc.asyncProperty(root, fc.array(part, { maxLength: 10 }), async (start, parts) => {
      const output = await ground.call(readTool, { path: start + parts.join("/") || "." });
      assert.doesNotMatch(output.content, new RegExp(secret));
      const place = await ground.workspace.resolve(start + parts.join("/")).catch(() => undefined);
      if (place === undefined) return;
      if (place.stats !== null) assert.ok(insideInodes.has(place.stats.ino), place.relative);
      assert.ok(insideInodes.has((await place.directory.handle.stat()).ino));
      await place[Symbol.asyncDispose]();
    }),
    { numRuns: propertyRuns(1_500) },
  );
});

test("leaves no directory open after a walk", { skip: process.platform !== "linux" }, async () => {
  await using ground = await makeWorkspaceFixture();
  await mkdir(join(ground.inside, "a/b/c"), { recursive: true });
  await writeFile(join(ground.inside, "a/b/c/f"), "x\n");
  await symlink("../../..", join(ground.inside, "a/b/up"));
  const round = async () => {
    for (const path of ["a/b/c/f", "a/b/up/x", "a/b/c/../../b/c/f", "a/b/c/f/g", "none/x", "../x"]) {
      await ground.call(readTool, { path });
      await ground.call(lsTool, { path });
      await ground.call(grepTool, { path, pattern: "x" });
    }
    await ground.call(writeTool, { path: "a/new/deep/file", content: "x" });
  };
  await round();
  // Only descriptors of the workspace count: the runtime opens and closes others at any time.
  const open = () =>
    readdirSync("/proc/self/fd").filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).startsWith(ground.inside);
      } catch {
        return false;
      }
    });
  assert.equal(open().length, 1, "only the workspace folder itself");
});

async function inodesOf(workspace: Workspace): Promise<Set<number>> {
  const inodes = new Set<number>([(await stat(workspace.root)).ino]);
  for (const entry of await readdir(workspace.root, { recursive: true, withFileTypes: true })) {
    if (!entry.isSymbolicLink()) inodes.add((await stat(join(entry.parentPath, entry.name))).ino);
  }
  return inodes;
}
