// Which commands are stopped when the workspace exceeds its quota: the writers, or all when the writers are unknown.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { openExecutor } from "../src/sandbox/executor.ts";
import { defaultExecLimits } from "../src/sandbox/limits.ts";
import { writesOf } from "../src/workspace/process-tree.ts";
import { WorkspaceQuota } from "../src/workspace/quota.ts";
import { Books, Writers, type Writes } from "../src/workspace/writers.ts";
import { bwrap, sleeper } from "./support/commands.ts";
import { makeWorkspaceFixture, type WorkspaceFixture } from "./support/workspace-fixture.ts";

const mebibyte = 1024 * 1024;
const quota = { maxBytes: 2 * mebibyte, minFreeBytes: 0 };
const skip = writesOf([]) === undefined ? "this machine does not report who writes" : false;

const writes = (own: number, commands: Record<number, number> = {}): Writes => ({
  own,
  commands: new Map(Object.entries(commands).map(([command, bytes]) => [Number(command), bytes])),
});
const look = (bytes: number, now: Writes | undefined) => ({ bytes, from: now, to: now });

describe("the writers between two samples", () => {
  test("are those that have written since the last sample", () => {
    const writers = new Writers();
    writers.calm(look(0, writes(0, { 1: 5 * mebibyte, 2: 0 })));
    const found = writers.since(look(9 * mebibyte, writes(0, { 1: 5 * mebibyte, 2: 9 * mebibyte, 3: 1 })));
    assert.deepEqual(found, new Set([2, 3]));
    assert.deepEqual(writers.since(look(9 * mebibyte, writes(0, { 1: 5 * mebibyte, 3: 1 }))), new Set());
  });

  test("do not include others for bytes of a command that has ended meanwhile", () => {
    const writers = new Writers();
    writers.calm(look(0, writes(0, { 1: 0, 2: mebibyte })));
    assert.deepEqual(writers.since(look(50 * mebibyte, writes(51 * mebibyte, { 1: 0 }))), new Set());
  });

  test("include those that wrote while the previous sample was taken", () => {
    const writers = new Writers();
    writers.calm({ bytes: 0, from: writes(0, { 1: 0, 2: 0 }), to: writes(0, { 1: 0, 2: 9 * mebibyte }) });
    assert.deepEqual(writers.since(look(9 * mebibyte, writes(0, { 1: 0, 2: 9 * mebibyte }))), new Set([2]));
  });

  test("lose no bytes of a killed command, and count none twice when its parent collected them", () => {
    const [killed, ended] = [new Books(), new Books()];
    for (const books of [killed, ended]) books.enter(writes(10, { 1: 100, 2: 5 }));
    assert.deepEqual(killed.enter(writes(12, { 2: 6 })), writes(110, { 2: 6 }));
    assert.deepEqual(killed.enter(writes(13, { 2: 6 })), writes(111, { 2: 6 }));
    assert.deepEqual(ended.enter(writes(112, { 2: 6 })), writes(112, { 2: 6 }));
    assert.equal(ended.enter(undefined), undefined);
  });

  test("are unknown when growth has no observed writer, also when it accumulates slowly", () => {
    const writers = new Writers();
    const same = writes(0, { 1: 0 });
    writers.calm(look(0, same));
    const found = [1, 2, 3, 4, 5, 6].map((n) => writers.since(look(n * 0.25 * mebibyte, same)));
    assert.deepEqual(found, [new Set(), new Set(), new Set(), new Set(), undefined, new Set()]);
    writers.calm(look(0, same));
    assert.deepEqual(writers.since(look(mebibyte, same)), new Set());
  });

  test("are unknown without a previous sample", () => {
    const writers = new Writers();
    assert.equal(writers.since(look(1, writes(0))), undefined);
    assert.deepEqual(writers.since(look(1, writes(0))), new Set());
    assert.equal(writers.since(look(1, undefined)), undefined);
    assert.equal(writers.since(look(1, writes(0))), undefined);
    writers.calm(undefined);
    assert.equal(writers.since(look(1, writes(0))), undefined);
  });
});

/** A shell that runs the given lines; each promise resolves when its line is done. */
function openShell({ inside }: WorkspaceFixture) {
  const child = spawn("/bin/sh", ["-c", 'while read -r line; do eval "$line"; echo done; done'], {
    cwd: inside,
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const exited = once(child, "exit");
  return {
    pid: child.pid ?? assert.fail("no shell"),
    told: async (line: string) => {
      child.stdin.write(`${line}\n`);
      await once(child.stdout, "data");
    },
    close: async () => {
      child.stdin.end();
      await exited;
    },
  };
}

/** Polls until a count has started after this call: the count includes a file created here. */
async function counted(room: WorkspaceQuota, { inside }: WorkspaceFixture, ask: () => Promise<unknown>): Promise<void> {
  const before = room.usedBytes;
  await writeFile(join(inside, `mark-${randomBytes(6).toString("hex")}`), randomBytes(8192));
  const deadline = performance.now() + 20_000;
  while (room.usedBytes === before) {
    assert.ok(performance.now() < deadline, "no new count was made");
    await ask();
  }
}

/** Two commands in a watched workspace, and the stop reason of each. */
async function openTwo(ground: WorkspaceFixture, rules = quota) {
  const room = new WorkspaceQuota(ground.inside, rules);
  const first = openShell(ground);
  const second = openShell(ground);
  const watched = [first, second].map(({ pid }) => {
    const watch = room.watch();
    watch.began(pid);
    return watch;
  });
  const ask = async () => {
    const found: (string | undefined)[] = [];
    for (const watch of watched) found.push(await watch.look());
    return found;
  };
  const looks = async () => {
    await counted(room, ground, ask);
    return ask();
  };
  assert.deepEqual(await looks(), [undefined, undefined]);
  return {
    first,
    second,
    looks,
    endSecond: () => watched[1]?.end(),
    [Symbol.asyncDispose]: async () => {
      for (const watch of watched) watch.end();
      await first.close();
      await second.close();
    },
  };
}

describe("with two commands above the quota", { skip }, () => {
  test("stops the current writer, also for its child process, and not an earlier writer", async () => {
    await using ground = await makeWorkspaceFixture();
    await using two = await openTwo(ground);
    await two.first.told("head -c 1000000 /dev/urandom > early");
    assert.deepEqual(await two.looks(), [undefined, undefined]);
    await two.second.told("(head -c 3000000 /dev/urandom > late)");
    assert.deepEqual(await two.looks(), [undefined, "workspace_full"]);
  });

  test("keeps the remaining command running until it writes itself", async () => {
    await using ground = await makeWorkspaceFixture();
    await using two = await openTwo(ground);
    await two.second.told("head -c 3000000 /dev/urandom > late");
    two.endSecond();
    await two.second.close();
    assert.equal((await two.looks())[0], undefined);
    assert.equal((await two.looks())[0], undefined);
    await two.first.told("echo more > more");
    assert.equal((await two.looks())[0], "workspace_full");
  });

  test("stops both when no writer was observed", async () => {
    await using ground = await makeWorkspaceFixture();
    await using two = await openTwo(ground);
    await two.second.told("fallocate -l 4000000 set-aside");
    assert.deepEqual(await two.looks(), ["workspace_full", "workspace_full"]);
  });
});

for (const setting of ["bubblewrap", "none"] as const) {
  const reason = setting === "bubblewrap" && bwrap === undefined ? "no bubblewrap here" : skip;
  test(
    `keeps a sleeping command while another fills the workspace, isolation ${setting}`,
    { skip: reason },
    async () => {
      await using ground = await makeWorkspaceFixture(quota);
      const { workspace } = ground;
      const limits = defaultExecLimits(totalmem());
      const executor = await openExecutor({
        workspace,
        setting,
        bwrap: bwrap ?? "bwrap",
        searchPath: "/usr/bin",
        limits,
      });
      const start = async (command: string, onOutput: () => void = () => undefined) => {
        await using place = await workspace.resolve(".");
        return executor.start({
          command,
          workspace,
          secrets: false,
          place,
          interactive: false,
          callName: "call",
          onOutput,
        });
      };
      const early = Promise.withResolvers<void>();
      const sleeps = await start(`head -c 500000 /dev/urandom > small; echo written; ${sleeper()}`, early.resolve);
      try {
        await early.promise;
        await counted(workspace.room, ground, turn);
        const writer = await start("while true; do head -c 3000000 /dev/urandom > large; done");
        assert.equal((await writer.ended).stopped, "workspace_full");
        // A count may already have been running.
        for (let n = 0; n < 3; n += 1) await counted(workspace.room, ground, turn);
      } finally {
        sleeps.stop("cancelled");
      }
      assert.equal((await sleeps.ended).stopped, "cancelled");
    },
  );
}
