// Who is stopped when the workspace is over its quota: those that write, and, where that cannot be told, all.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { openExecutor } from "../src/exec/executor.ts";
import { defaultExecLimits } from "../src/exec/limits.ts";
import { writesOf } from "../src/exec/process-tree.ts";
import { Room } from "../src/workspace/room.ts";
import { Books, Writers, type Writes } from "../src/workspace/writers.ts";
import { bwrap, sleeper } from "./support/commands.ts";
import { makeGround, type Ground } from "./support/ground.ts";

const mebibyte = 1024 * 1024;
const quota = { maxBytes: 2 * mebibyte, minFreeBytes: 0 };
const skip = writesOf([]) === undefined ? "nothing says here who writes" : false;

const writes = (own: number, commands: Record<number, number> = {}): Writes => ({
  own,
  commands: new Map(Object.entries(commands).map(([command, bytes]) => [Number(command), bytes])),
});
const look = (bytes: number, now: Writes | undefined) => ({ bytes, from: now, to: now });

describe("who writes is told from one look to the next", () => {
  test("by what each has written since, whatever it wrote before", () => {
    const writers = new Writers();
    writers.calm(look(0, writes(0, { 1: 5 * mebibyte, 2: 0 })));
    const found = writers.since(look(9 * mebibyte, writes(0, { 1: 5 * mebibyte, 2: 9 * mebibyte, 3: 1 })));
    assert.deepEqual(found, new Set([2, 3]));
    assert.deepEqual(writers.since(look(9 * mebibyte, writes(0, { 1: 5 * mebibyte, 3: 1 }))), new Set());
  });

  test("and what one has written that ended meanwhile is on nobody else's account", () => {
    const writers = new Writers();
    writers.calm(look(0, writes(0, { 1: 0, 2: mebibyte })));
    assert.deepEqual(writers.since(look(50 * mebibyte, writes(51 * mebibyte, { 1: 0 }))), new Set());
  });

  test("and what is written while a look lasts is on the account of the look after it as well", () => {
    const writers = new Writers();
    writers.calm({ bytes: 0, from: writes(0, { 1: 0, 2: 0 }), to: writes(0, { 1: 0, 2: 9 * mebibyte }) });
    assert.deepEqual(writers.since(look(9 * mebibyte, writes(0, { 1: 0, 2: 9 * mebibyte }))), new Set([2]));
  });

  test("and what a killed one had written is not lost with it, nor counted twice where its parent has heard of it", () => {
    const [killed, ended] = [new Books(), new Books()];
    for (const books of [killed, ended]) books.enter(writes(10, { 1: 100, 2: 5 }));
    assert.deepEqual(killed.enter(writes(12, { 2: 6 })), writes(110, { 2: 6 }));
    assert.deepEqual(killed.enter(writes(13, { 2: 6 })), writes(111, { 2: 6 }));
    assert.deepEqual(ended.enter(writes(112, { 2: 6 })), writes(112, { 2: 6 }));
    assert.equal(ended.enter(undefined), undefined);
  });

  test("but what nobody was seen to write may be anybody's, also where it comes little by little", () => {
    const writers = new Writers();
    const same = writes(0, { 1: 0 });
    writers.calm(look(0, same));
    const found = [1, 2, 3, 4, 5, 6].map((n) => writers.since(look(n * 0.25 * mebibyte, same)));
    assert.deepEqual(found, [new Set(), new Set(), new Set(), new Set(), undefined, new Set()]);
    writers.calm(look(0, same));
    assert.deepEqual(writers.since(look(mebibyte, same)), new Set());
  });

  test("and without anything to compare with it is not known", () => {
    const writers = new Writers();
    assert.equal(writers.since(look(1, writes(0))), undefined);
    assert.deepEqual(writers.since(look(1, writes(0))), new Set());
    assert.equal(writers.since(look(1, undefined)), undefined);
    assert.equal(writers.since(look(1, writes(0))), undefined);
    writers.calm(undefined);
    assert.equal(writers.since(look(1, writes(0))), undefined);
  });
});

/** A shell that carries out the lines it is told: each is done when the promise resolves. */
function openShell({ inside }: Ground) {
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

/** Asks until a count has begun after this call: it finds what is put there for it. */
async function counted(room: Room, { inside }: Ground, ask: () => Promise<unknown>): Promise<void> {
  const before = room.usedBytes;
  await writeFile(join(inside, `mark-${randomBytes(6).toString("hex")}`), randomBytes(8192));
  const deadline = performance.now() + 20_000;
  while (room.usedBytes === before) {
    assert.ok(performance.now() < deadline, "it is not counted any more");
    await ask();
  }
}

/** Two commands in a workspace that is counted, and what each is to be stopped for. */
async function openTwo(ground: Ground, rules = quota) {
  const room = new Room(ground.inside, rules);
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

describe("of two commands above the quota", { skip }, () => {
  test("the one that writes is stopped, also for a process of its own, and the one that wrote before is not", async () => {
    await using ground = await makeGround();
    await using two = await openTwo(ground);
    await two.first.told("head -c 1000000 /dev/urandom > early");
    assert.deepEqual(await two.looks(), [undefined, undefined]);
    await two.second.told("(head -c 3000000 /dev/urandom > late)");
    assert.deepEqual(await two.looks(), [undefined, "workspace_full"]);
  });

  test("the one that is left may go on, and is stopped when it writes itself", async () => {
    await using ground = await makeGround();
    await using two = await openTwo(ground);
    await two.second.told("head -c 3000000 /dev/urandom > late");
    two.endSecond();
    await two.second.close();
    assert.equal((await two.looks())[0], undefined);
    assert.equal((await two.looks())[0], undefined);
    await two.first.told("echo more > more");
    assert.equal((await two.looks())[0], "workspace_full");
  });

  test("both are stopped where nobody was seen to write what has come", async () => {
    await using ground = await makeGround();
    await using two = await openTwo(ground);
    await two.second.told("fallocate -l 4000000 set-aside");
    assert.deepEqual(await two.looks(), ["workspace_full", "workspace_full"]);
  });
});

for (const setting of ["bubblewrap", "none"] as const) {
  const reason = setting === "bubblewrap" && bwrap === undefined ? "no bubblewrap here" : skip;
  test(
    `a command that sleeps while another one fills the workspace goes on, isolation ${setting}`,
    { skip: reason },
    async () => {
      await using ground = await makeGround(quota);
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
        // A count may have been under way.
        for (let n = 0; n < 3; n += 1) await counted(workspace.room, ground, turn);
      } finally {
        sleeps.stop("cancelled");
      }
      assert.equal((await sleeps.ended).stopped, "cancelled");
    },
  );
}
