// The file of a long output: the clean-up of earlier ones, and a file that can no longer be written.
import assert from "node:assert/strict";
import { closeSync, readdirSync, readlinkSync } from "node:fs";
import { mkdir, readdir, readFile, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { openSpill } from "../src/sandbox/spill.ts";
import { makeWorkspaceFixture } from "./support/workspace-fixture.ts";

test("removes old outputs and no other file when it opens a new one", async () => {
  await using ground = await makeWorkspaceFixture();
  const folder = join(ground.inside, ".parley/output");
  await mkdir(folder, { recursive: true });
  const names = Array.from({ length: 60 }, (_, n) => `turn-${n}.txt`);
  for (const [at, name] of ["mine.md", "notes.txt", ...names].entries()) {
    await writeFile(join(folder, name), "x");
    await utimes(join(folder, name), at, at);
  }
  const spill = await openSpill(ground.workspace, "turn-99", 10);
  spill.close();
  const left = await readdir(folder);
  assert.deepEqual(left.toSorted(), ["mine.md", "notes.txt", ...names.slice(-49), "turn-99.txt"].toSorted());
});

test("removes and writes nothing when the folder or the file is a link in the workspace", async () => {
  await using ground = await makeWorkspaceFixture();
  const [src, output] = [join(ground.inside, "src"), join(ground.inside, ".parley/output")];
  await mkdir(src);
  await mkdir(join(ground.inside, ".parley"));
  for (let n = 0; n < 60; n += 1) await writeFile(join(src, `part-${n}.txt`), "mine");
  const before = await readdir(src);
  await symlink("../src", output);
  await assert.rejects(openSpill(ground.workspace, "turn-1", 10));
  assert.deepEqual(await readdir(src), before);

  await using whole = await makeWorkspaceFixture();
  const folder = join(whole.inside, ".parley/output");
  await mkdir(folder, { recursive: true });
  await writeFile(join(whole.inside, "a.txt"), "mine");
  await symlink("../../a.txt", join(folder, "turn-1.txt"));
  await assert.rejects(openSpill(whole.workspace, "turn-1", 10));
  assert.equal(await readFile(join(whole.inside, "a.txt"), "utf8"), "mine");
});

const skip = process.platform === "linux" ? false : "it needs /proc/self/fd";

/** Closes the descriptor of a file behind its back, so that its next write and close fail. */
function breakFile(path: string): void {
  const open = readdirSync("/proc/self/fd").filter((fd) => targetOf(fd) === path);
  assert.equal(open.length, 1);
  closeSync(Number(open[0]));
}

function targetOf(fd: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    // The descriptor with which the directory was read.
    return undefined;
  }
}

test("keeps what was written and does not throw when the file cannot be closed", { skip }, async () => {
  await using ground = await makeWorkspaceFixture();
  const spillOf = (name: string) => openSpill(ground.workspace, name, 10);
  const [first, second] = [await spillOf("turn-1"), await spillOf("turn-2")];
  first.write(Buffer.from("abc"));
  breakFile(join(ground.inside, first.path));
  first.close();
  breakFile(join(ground.inside, second.path));
  second.write(Buffer.from("abc"));
  second.close();
  assert.deepEqual([first.writtenBytes, second.writtenBytes], [3, 0]);
});
