// The quota of the workspace and the free space of its disk, with real files.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { link, mkdir, rm, statfs, symlink, truncate, writeFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { openExecutor } from "../src/sandbox/executor.ts";
import { defaultExecLimits } from "../src/sandbox/limits.ts";
import { WorkspaceError } from "../src/workspace/errors.ts";
import { Gauge, WorkspaceQuota, type QuotaRules } from "../src/workspace/quota.ts";
import { diskUsage } from "../src/workspace/disk-usage.ts";
import { applyPatchTool } from "../src/tools/apply-patch.ts";
import { editTool } from "../src/tools/edit.ts";
import { writeTool } from "../src/tools/write.ts";
import { makeDeep, skipDeep } from "./support/deep-folders.ts";
import { bwrap, sleeper } from "./support/commands.ts";
import { pollUntil } from "@parley/testing/until";
import { makeWorkspaceFixture } from "./support/workspace-fixture.ts";

const mebibyte = 1024 * 1024;
const run = promisify(execFile);
const noRoom = (words: RegExp) => (error: unknown) =>
  error instanceof WorkspaceError && error.code === "no_room" && words.test(error.message);
const quota = (maxBytes: number): QuotaRules => ({ maxBytes, minFreeBytes: 0 });

test("counts what du counts: hard links once, no holes, no followed links", async () => {
  await using ground = await makeWorkspaceFixture();
  const { inside, outside } = ground;
  await mkdir(join(inside, "a/b"), { recursive: true });
  await writeFile(join(inside, "a/b/real"), randomBytes(3 * mebibyte));
  await link(join(inside, "a/b/real"), join(inside, "a/second-name"));
  await writeFile(join(inside, "hole"), "");
  await truncate(join(inside, "hole"), 64 * mebibyte);
  await writeFile(join(outside, "large"), randomBytes(2 * mebibyte));
  await symlink(outside, join(inside, "out"));
  const counted = await diskUsage(inside);
  const said = Number((await run("du", ["-s", "--block-size=1", inside])).stdout.split("\t")[0]);
  assert.ok(Math.abs(counted - said) < 64 * 1024, `${counted} counted, du reports ${said}`);
});

test("counts files with names that are not UTF-8 and below long paths", { skip: skipDeep }, async () => {
  await using ground = await makeWorkspaceFixture();
  const { inside } = ground;
  const odd = Buffer.concat([Buffer.from(`${inside}/odd`), Buffer.from([0xff])]);
  await mkdir(odd);
  await writeFile(Buffer.concat([odd, Buffer.from("/file")]), randomBytes(mebibyte));
  try {
    await makeDeep(inside, 40, randomBytes(mebibyte));
    const counted = await diskUsage(inside);
    const said = Number((await run("du", ["-s", "--block-size=1", inside])).stdout.split("\t")[0]);
    assert.ok(Math.abs(counted - said) < 64 * 1024, `${counted} counted, du reports ${said}`);
  } finally {
    await run("rm", ["-rf", inside]);
  }
});

test("counts empty files", async () => {
  await using ground = await makeWorkspaceFixture();
  for (let n = 0; n < 500; n++) await writeFile(join(ground.inside, `f${n}`), "");
  assert.ok((await diskUsage(ground.inside)) >= 500 * 1024);
});

test("rejects writes that do not fit, changes nothing, and says what to do", async () => {
  await using ground = await makeWorkspaceFixture({ maxBytes: 2 * mebibyte, minFreeBytes: 0 });
  const { inside } = ground;
  await writeFile(join(inside, "big"), randomBytes(mebibyte));
  const text = "x".repeat(1.5 * mebibyte);
  const written = await ground.call(writeTool, { path: "deep/er/new.txt", content: text });
  assert.equal(written.isError, true);
  assert.match(written.content, /The workspace is full: it uses .* of 2.* MiB\. Nothing was written\. Delete/);
  await assert.rejects(statfs(join(inside, "deep")), "no parent directory was created");

  assert.equal((await ground.call(writeTool, { path: "small.txt", content: "one\n" })).isError, false);
  const edited = await ground.call(editTool, { path: "small.txt", old_text: "one", new_text: text });
  assert.match(edited.content, /The workspace is full/);
  const lines = text
    .replaceAll(/.{100}/g, "$&\n")
    .split("\n")
    .slice(0, 1_200);
  await writeFile(join(inside, "filler"), randomBytes(mebibyte - 64 * 1024));
  const patch = `*** Begin Patch\n*** Add File: added.txt\n${lines.map((line) => `+${line}`).join("\n")}\n*** End Patch`;
  const patched = await ground.call(applyPatchTool, { patch });
  assert.match(patched.content, /^Nothing was changed\. The workspace is full/);

  await rm(join(inside, "big"));
  assert.equal((await ground.call(writeTool, { path: "new.txt", content: "y".repeat(mebibyte) })).isError, false);
});

test("allows a write that shrinks a file in a full workspace", async () => {
  await using ground = await makeWorkspaceFixture({ maxBytes: mebibyte, minFreeBytes: 0 });
  await writeFile(join(ground.inside, "big"), randomBytes(2 * mebibyte));
  assert.equal((await ground.call(writeTool, { path: "more", content: "x" })).isError, true);
  assert.equal((await ground.call(writeTool, { path: "big", content: "x" })).isError, false);
});

test("keeps the minimum free space of the disk", async () => {
  await using ground = await makeWorkspaceFixture();
  const { bavail, bsize } = await statfs(ground.inside);
  const room = new WorkspaceQuota(ground.inside, { maxBytes: 0, minFreeBytes: bavail * bsize + 64 * 1024 * mebibyte });
  await assert.rejects(room.reserve(1), noRoom(/The disk of the workspace has .* left, and .* must stay free/));
  await new WorkspaceQuota(ground.inside, { maxBytes: 0, minFreeBytes: 1 }).reserve(mebibyte);
});

test("counts what a command has written even if others deleted as much meanwhile", async () => {
  await using ground = await makeWorkspaceFixture();
  const { inside, outside } = ground;
  await writeFile(join(outside, "theirs"), randomBytes(16 * mebibyte));
  const room = new WorkspaceQuota(inside, quota(mebibyte));
  await room.reserve(1);
  const unwatch = await room.watch(() => undefined);
  await writeFile(join(inside, "by-a-command"), randomBytes(2 * mebibyte));
  await rm(join(outside, "theirs"));
  unwatch();
  // Counting keeps to its share of the time; until the next count, the disk estimate is trusted.
  const deadline = performance.now() + 60_000;
  const refused = async () => {
    for (;;) {
      assert.ok(performance.now() < deadline, "the write was accepted every time");
      await room.reserve(1);
    }
  };
  await assert.rejects(refused(), noRoom(/The workspace is full: it uses 2/));
});

test("property: enforces the quota over any sequence of writes", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 600_000 }), { minLength: 1, maxLength: 12 }), async (sizes) => {
      await using ground = await makeWorkspaceFixture();
      const room = new WorkspaceQuota(ground.inside, quota(mebibyte));
      let written = 0;
      for (const [n, size] of sizes.entries()) {
        const fits = await room.reserve(size).then(
          () => true,
          () => false,
        );
        // Names and partial blocks count as well: a rejected write must have come near the limit.
        if (!fits) assert.ok(written + size > mebibyte - (n + 2) * 8192);
        else {
          await writeFile(join(ground.inside, `f${n}`), randomBytes(size));
          written += size;
        }
      }
      assert.ok(written <= mebibyte);
    }),
    { numRuns: 25 },
  );
});

test("stops a command for growth of the workspace, not for earlier content", async () => {
  await using ground = await makeWorkspaceFixture();
  const { inside } = ground;
  await writeFile(join(inside, "before"), randomBytes(3 * mebibyte));
  const room = new WorkspaceQuota(inside, quota(2 * mebibyte));
  const stopped = Promise.withResolvers<string>();
  const unwatch = await room.watch(stopped.resolve);
  await writeFile(join(inside, "little"), randomBytes(8192), { flush: true });
  await pollUntil(() => (room.usedBytes ?? 0) > 3 * mebibyte + 4096, "the small file was counted");
  assert.equal(await Promise.race([stopped.promise, turn("running")]), "running");
  await writeFile(join(inside, "during"), randomBytes(2 * mebibyte), { flush: true });
  assert.equal(await stopped.promise, "workspace_full");
  unwatch();
  for (const name of ["before", "little", "during"]) await rm(join(inside, name));
  await room.reserve(mebibyte);
});

test("stops the newest command first, and an older one only while usage still grows", async () => {
  await using ground = await makeWorkspaceFixture();
  const { inside } = ground;
  const room = new WorkspaceQuota(inside, quota(mebibyte));
  const stopped: string[] = [];
  const write = (name: string) => writeFileSync(join(inside, name), randomBytes(2 * mebibyte), { flush: true });
  const counted = (bytes: number) => pollUntil(() => (room.usedBytes ?? 0) >= bytes, "the file was counted");
  const ends = [];
  for (const name of ["first", "second", "third"]) {
    const stop = () => {
      stopped.push(name);
      // Written before it ends: no other command is stopped for it.
      if (name === "third") write("late");
    };
    ends.push(await room.watch(stop));
  }
  write("early");
  await counted(4 * mebibyte);
  assert.deepEqual(stopped, ["third"]);
  await pollUntil(() => {
    write(`more-${room.usedBytes}`);
    return stopped.length > 1;
  }, "another was stopped");
  assert.deepEqual(stopped, ["third", "second"]);
  for (const end of ends) end();
});

test("stops neither an older nor a later command for the growth of a command that has ended", async () => {
  await using ground = await makeWorkspaceFixture();
  const { inside } = ground;
  const room = new WorkspaceQuota(inside, quota(mebibyte));
  const stopped: string[] = [];
  const watch = (name: string) => room.watch(() => stopped.push(name));
  const ends = [await watch("older")];
  const end = await watch("ended");
  writeFileSync(join(inside, "large"), randomBytes(3 * mebibyte), { flush: true });
  end();
  ends.push(await watch("later"));
  await pollUntil(() => (room.usedBytes ?? 0) >= 3 * mebibyte, "the file was counted");
  // The next count comes after the decision about this one.
  writeFileSync(join(inside, "small"), randomBytes(8192), { flush: true });
  await pollUntil(() => (room.usedBytes ?? 0) >= 3 * mebibyte + 8192, "the small file was counted");
  assert.deepEqual(stopped, []);
  for (const each of ends) each();
});

test("property: a level counts as growing only above its limit, and above what was there before", () => {
  const level = fc.integer({ min: 0, max: 40 }).map((n) => (n * mebibyte) / 2);
  fc.assert(
    fc.property(level, fc.array(level, { minLength: 1, maxLength: 20 }), (limit, levels) => {
      const gauge = new Gauge(limit);
      let lowest = Number.POSITIVE_INFINITY;
      for (const each of levels) {
        const grown = gauge.grows(each);
        assert.equal(grown, each > limit && each > lowest + mebibyte);
        lowest = grown ? Number.POSITIVE_INFINITY : Math.min(lowest, each);
      }
    }),
    { numRuns: propertyRuns(2_000) },
  );
});

for (const setting of ["bubblewrap", "none"] as const) {
  const skip = setting === "bubblewrap" && bwrap === undefined ? "no bubblewrap here" : false;
  test(`keeps an older command while a newer one fills the workspace, isolation ${setting}`, { skip }, async () => {
    await using ground = await makeWorkspaceFixture(quota(2 * mebibyte));
    const { workspace } = ground;
    const limits = defaultExecLimits(totalmem());
    const executor = await openExecutor({
      workspace,
      setting,
      bwrap: bwrap ?? "bwrap",
      searchPath: "/usr/bin",
      limits,
    });
    const start = async (command: string) => {
      await using place = await workspace.resolve(".");
      const rest = {
        workspace,
        isOwners: false,
        place,
        interactive: false,
        callName: "call",
        onOutput: () => undefined,
      };
      return executor.start({ command, ...rest });
    };
    const sleeps = await start(sleeper());
    try {
      const writer = await start("while true; do head -c 3000000 /dev/urandom > large; done");
      assert.equal((await writer.ended).stopReason, "workspace_full");
    } finally {
      sleeps.stop("cancelled");
    }
    assert.equal((await sleeps.ended).stopReason, "cancelled");
  });
}
