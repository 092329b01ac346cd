// Two tool-runners on one volume: writers of a file exclude each other, and a dead writer blocks others only briefly.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { Cleanup } from "@parley/testing";
import { writeTool } from "../src/tools/write.ts";
import { whileLocked } from "../src/workspace/locks.ts";
import { openWorkspace } from "../src/workspace/workspace.ts";
import { makeWorkspaceFixture } from "./support/workspace-fixture.ts";
import { openRunnerFixture } from "./support/runner-fixture.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());
let writers = 0;
const writer = (signal = new AbortController().signal) => ({ idempotencyKey: `turn:${(writers += 1)}`, signal });

test("applies all concurrent edits of one file by two replicas", async () => {
  const fixture = await openRunnerFixture(cleanup);
  const runners = await Promise.all(["first", "second"].map((name) => fixture.runner(name)));
  assert.equal(runners.length, 2);
  const { workspace, stateFolder } = await fixture.config("x");
  const slots = Array.from({ length: 16 }, (_, n) => `slot-${n};`);
  await writeFile(join(workspace, "list.txt"), slots.map((slot) => `${slot} open\n`).join(""));
  await symlink("list.txt", join(workspace, "other-name.txt"));
  const calls = await Promise.all(
    slots.map(async (slot, n) => {
      const input = {
        path: n % 2 === 0 ? "list.txt" : "other-name.txt",
        old_text: `${slot} open`,
        new_text: `${slot} done`,
      };
      const [request] = await fixture.plan([{ tool: "edit", class: "once", input }]);
      assert.ok(request !== undefined);
      return request;
    }),
  );
  const answers = await Promise.all(calls.map((request) => fixture.call(request)));
  assert.deepEqual(
    answers.filter(({ result }) => result.isError).map(({ result }) => result.content),
    [],
  );
  const steps = await Promise.all(calls.map((request) => fixture.step(request)));
  assert.equal(new Set(steps.map(({ runner }) => runner)).size, 2, "both replicas edited");
  assert.equal(await readFile(join(workspace, "list.txt"), "utf8"), slots.map((slot) => `${slot} done\n`).join(""));
  assert.deepEqual(await readdir(join(stateFolder, "locks")), []);
});

test("serializes writers of one file, and several files cause no deadlock", async () => {
  await using ground = await makeWorkspaceFixture();
  await using second = await openWorkspace(ground.inside, undefined, dirname(ground.workspace.lockFolder));
  let inside = 0;
  let most = 0;
  const turn = (paths: readonly string[], n: number) =>
    whileLocked(n % 2 === 0 ? ground.workspace : second, paths, writer(), async () => {
      inside += 1;
      most = Math.max(most, inside);
      await readdir(ground.inside);
      inside -= 1;
    });
  await Promise.all(Array.from({ length: 30 }, (_, n) => turn(n % 3 === 0 ? ["a", "b"] : ["b", "./a", "c/../a"], n)));
  assert.equal(most, 1);
});

test("takes over a stale lock, and waits for a held one until the call is cancelled", async () => {
  await using ground = await makeWorkspaceFixture();
  const cancelled = new AbortController();
  await whileLocked(ground.workspace, ["a.txt"], writer(), async () => {
    const waiting = whileLocked(ground.workspace, ["a.txt"], writer(cancelled.signal), async () =>
      assert.fail("it must wait for the lock"),
    );
    cancelled.abort(new Error("cancelled"));
    await assert.rejects(waiting, /cancelled/);
    const [name = ""] = await readdir(ground.workspace.lockFolder);
    const path = join(ground.workspace.lockFolder, name);
    const long = new Date(Date.now() - 120_000);
    await utimes(path, long, long);
    assert.equal(await whileLocked(ground.workspace, ["a.txt"], writer(), async () => "took over"), "took over");
  });
  assert.deepEqual(await readdir(ground.workspace.lockFolder), []);
});

test("reuses its own lock when a call is repeated after its runner died", async () => {
  await using ground = await makeWorkspaceFixture();
  const me = writer();
  await whileLocked(ground.workspace, ["a.txt"], me, async () => {
    assert.equal(await whileLocked(ground.workspace, ["a.txt"], me, async () => "again"), "again");
  });
});

test("writes when .parley in the workspace is a link to the outside", async () => {
  await using ground = await makeWorkspaceFixture();
  await symlink(ground.outside, join(ground.inside, ".parley"));
  const written = await ground.call(writeTool, { path: "a.txt", content: "written" });
  assert.equal(written.isError, false, written.content);
  assert.equal(await readFile(join(ground.inside, "a.txt"), "utf8"), "written");
  assert.deepEqual(await readdir(ground.outside), ["secret.txt"]);
});

/** What unsandboxed commands can put in the place of a lock. */
const foreign: Record<string, (path: string) => unknown> = {
  "a pipe": (path) => execFileSync("mkfifo", [path]),
  "a link to a device": (path) => symlink("/dev/zero", path),
  "a dangling link": (path) => symlink("/nowhere/at/all", path),
  "a folder with files": async (path) => {
    await mkdir(path);
    await writeFile(join(path, "file"), "");
  },
  "a large file": (path) => writeFile(path, "x".repeat(100_000)),
  "a file from the future": async (path) => {
    await writeFile(path, "somebody:1");
    const future = new Date(Date.now() + 86_400_000);
    await utimes(path, future, future);
  },
};

for (const [what, put] of Object.entries(foreign)) {
  test(`replaces ${what} in the place of a lock`, { timeout: 10_000 }, async () => {
    await using ground = await makeWorkspaceFixture();
    const { lockFolder } = ground.workspace;
    let name = "";
    await whileLocked(ground.workspace, ["a.txt"], writer(), async () => ([name = ""] = await readdir(lockFolder)));
    await put(join(lockFolder, name));
    assert.equal(await whileLocked(ground.workspace, ["a.txt"], writer(), async () => "locked"), "locked");
    assert.deepEqual(await readdir(lockFolder), []);
  });
}

test("recreates the lock folder when it was removed", async () => {
  await using ground = await makeWorkspaceFixture();
  await whileLocked(ground.workspace, ["a.txt"], writer(), async () => undefined);
  await rm(ground.workspace.lockFolder, { recursive: true });
  assert.equal(await whileLocked(ground.workspace, ["a.txt"], writer(), async () => "locked"), "locked");
});
