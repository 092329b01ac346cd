// Attempts of commands to fill the disk: by many files, by names, by files that have no name any more, in the background, through the tools, and once
// the workspace is full already. What became of it is counted by `du` and read from files, from outside.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statfsSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { openExecutor } from "../../src/exec/executor.ts";
import { defaultExecLimits } from "../../src/exec/limits.ts";
import { Processes } from "../../src/process/processes.ts";
import { execTool } from "../../src/tools/exec.ts";
import { writeTool } from "../../src/tools/write.ts";
import type { RoomRules } from "../../src/workspace/room.ts";
import { bwrap, running, sleeper } from "../support/commands.ts";
import { makeGround, type Ground } from "../support/ground.ts";
import { until } from "../support/until.ts";
import { attempt } from "./ledger.ts";

const mebibyte = 1024 * 1024;
const quotaBytes = 32 * mebibyte;
/** A command is looked at four times a second, and writes slowly here: so much it may write in between. */
const lateBytes = 64 * mebibyte;
const limits = { ...defaultExecLimits(totalmem()), maxFileBytes: 64 * mebibyte };

interface Shell extends AsyncDisposable {
  ground: Ground;
  run(command: string, background?: boolean): Promise<string>;
}

async function openShell(setting: "bubblewrap" | "none", rules: RoomRules): Promise<Shell> {
  const ground = await makeGround(rules);
  const { workspace } = ground;
  const executor = await openExecutor({ workspace, setting, bwrap: bwrap ?? "bwrap", searchPath: "/usr/bin", limits });
  const times = { timeoutSeconds: 30, backgroundAfterSeconds: 0, backgroundTimeoutSeconds: 30 };
  const processes = new Processes("here", { maxPerSession: 3, maxInAll: 10 });
  const tool = execTool({ executor, limits, processes, times });
  return {
    ground,
    run: async (command, background = false) => (await ground.call(tool, { command, background })).content,
    [Symbol.asyncDispose]: async () => {
      await processes.close();
      await ground[Symbol.asyncDispose]();
    },
  };
}

const takenBy = (folder: string) =>
  Number(execFileSync("du", ["-s", "--block-size=1", folder], { encoding: "utf8" }).split("\t")[0]);
/** A little at a time, on the disk before the next one. */
const slowly = (file: string) => `dd if=/dev/zero of=${file} bs=256K count=1 conv=fsync 2>/dev/null`;

export function diskAttempts(): void {
  for (const setting of ["bubblewrap", "none"] as const) {
    const against = setting === "none" ? "plain isolation" : setting;
    const quota = { maxBytes: quotaBytes, minFreeBytes: 0 };

    attempt("a command fills the disk with many files", against, async () => {
      await using shell = await openShell(setting, quota);
      const said = await shell.run(
        `i=0; while [ $i -lt 2000 ]; do ${slowly("f$i")}; i=$((i + 1)); done; echo > finished`,
      );
      assert.match(said, /the workspace grew over its limit/);
      assert.equal(existsSync(join(shell.ground.inside, "finished")), false);
      assert.ok(takenBy(shell.ground.inside) < quotaBytes + lateBytes);
    });

    attempt("a command fills the disk in the background, behind its first process", against, async () => {
      await using shell = await openShell(setting, quota);
      const mark = sleeper();
      await shell.run(
        `(setsid sh -c 'i=0; while [ $i -lt 2000 ]; do ${slowly("f$i")}; i=$((i + 1)); done' &); exec ${mark}`,
        true,
      );
      await until(() => running(mark).length > 0, "it runs");
      await until(() => running(mark).length === 0, "it was stopped");
      const names = readdirSync(shell.ground.inside).length;
      assert.ok(takenBy(shell.ground.inside) < quotaBytes + lateBytes);
      assert.ok(names < 2_000);
    });

    attempt("a command fills the table of files with empty ones", against, async () => {
      await using shell = await openShell(setting, { maxBytes: 4 * mebibyte, minFreeBytes: 0 });
      const said = await shell.run(
        `perl -e 'for $n (1 .. 200000) { open(F, ">", "f$n"); close F; select(undef, undef, undef, 0.001) unless $n % 20 } open(F, ">", "finished")'`,
      );
      assert.match(said, /the workspace grew over its limit/);
      assert.equal(existsSync(join(shell.ground.inside, "finished")), false);
    });

    attempt("a command fills the disk with files that have no name any more", against, async () => {
      const probe = await makeGround();
      const { bavail, bsize } = statfsSync(probe.inside);
      await probe[Symbol.asyncDispose]();
      await using shell = await openShell(setting, { maxBytes: 0, minFreeBytes: bavail * bsize - quotaBytes });
      const hidden = `perl -e '$| = 1; for $n (1 .. 600) { open($f[$n], "+>", "gone"); unlink("gone"); for (1 .. 4) { syswrite($f[$n], "x" x (1 << 20)) } select(undef, undef, undef, 0.02); open(S, ">", "so-far"); print S 4 * $n; close S } open(F, ">", "finished")'`;
      const said = await shell.run(hidden);
      assert.match(said, /the disk of the workspace is nearly full/);
      assert.equal(existsSync(join(shell.ground.inside, "finished")), false);
      assert.ok(Number(readFileSync(join(shell.ground.inside, "so-far"), "utf8")) < 600);
    });

    attempt(
      "a command goes on filling a workspace that is full, and others may still make room in it",
      against,
      async () => {
        await using shell = await openShell(setting, quota);
        const { inside } = shell.ground;
        writeFileSync(join(inside, "full"), Buffer.alloc(quotaBytes + mebibyte, 1));
        const said = await shell.run(
          `i=0; while [ $i -lt 2000 ]; do ${slowly("f$i")}; i=$((i + 1)); done; echo > finished`,
        );
        assert.match(said, /the workspace grew over its limit/);
        assert.ok(takenBy(inside) < quotaBytes + lateBytes);
        const written = await shell.ground.call(writeTool, { path: "more.txt", content: "more" });
        assert.match(written.content, /The workspace is full/);
        assert.match(await shell.run("rm -f full f*; echo made room"), /made room\n\[exit code 0/);
        assert.equal((await shell.ground.call(writeTool, { path: "more.txt", content: "more" })).isError, false);
      },
    );
  }
}
