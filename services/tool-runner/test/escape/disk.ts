// Attempts of commands to fill the disk: with many files, empty files, unlinked files, in the background, through the tools, and in a
// workspace that is already full. The results are measured from outside, with `du` and by reading files.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { constants, existsSync, readFileSync, statfsSync, writeFileSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { openExecutor } from "../../src/sandbox/executor.ts";
import { defaultExecLimits } from "../../src/sandbox/limits.ts";
import { Processes } from "../../src/processes/processes.ts";
import { execTool } from "../../src/tools/exec.ts";
import { writeTool } from "../../src/tools/write.ts";
import type { QuotaRules } from "../../src/workspace/quota.ts";
import { bwrap, running, sleeper } from "../support/commands.ts";
import { makeWorkspaceFixture, type WorkspaceFixture } from "../support/workspace-fixture.ts";
import { pollUntil } from "@parley/testing/until";
import { attempt } from "./ledger.ts";

const mebibyte = 1024 * 1024;
const quotaBytes = 16 * mebibyte;
/** A command may write one step at a time; this many steps reach the limit. */
const steps = 4;
/** At most this many steps are not yet counted, however late the counts are. */
const uncountedSteps = 2;
const paceMs = 50;
/** Maximum usage: the limit, the uncounted steps, and the directory entries. */
const mostBytes = quotaBytes + ((uncountedSteps + 1) * quotaBytes) / steps;
const limits = { ...defaultExecLimits(totalmem()), maxFileBytes: 64 * mebibyte };

/** A file system that other tests do not write to: its free space shows what this attempt has taken. */
const quietDisk = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

interface Shell extends AsyncDisposable {
  ground: WorkspaceFixture;
  run(command: string, background?: boolean): Promise<string>;
  /** From now on, each line read from `pace` permits one step. */
  allow(): void;
}

/** Permits to write, each a line of a pipe: the pace follows the counts, not the speed of the machine. */
async function openPace(ground: WorkspaceFixture): Promise<{ allow: () => void; close: () => Promise<void> }> {
  const path = join(ground.inside, "pace");
  execFileSync("mkfifo", [path]);
  const pipe = await open(path, constants.O_RDWR | constants.O_NONBLOCK);
  const { quota: room } = ground.workspace;
  const stepBytes = room.rules.maxBytes / steps;
  let given = 0;
  /** What was there before the first step; null: none is allowed yet. */
  let before: number | null = null;
  const step = () => {
    if (before === null) return;
    const counted = Math.max(0, (room.usedBytes ?? 0) - before);
    if (stepBytes !== 0 && given - Math.floor(counted / stepBytes) >= uncountedSteps) return;
    given += 1;
    writeSync(pipe.fd, "go\n");
  };
  const timer = setInterval(step, paceMs);
  const close = async () => {
    clearInterval(timer);
    await pipe.close();
  };
  return { allow: () => (before = takenBy(ground.inside)), close };
}

async function openShell(setting: "bubblewrap" | "none", rules: QuotaRules, disk?: string): Promise<Shell> {
  const ground = await makeWorkspaceFixture(rules, disk);
  const { workspace } = ground;
  const pace = await openPace(ground);
  const executor = await openExecutor({ workspace, setting, bwrap: bwrap ?? "bwrap", searchPath: "/usr/bin", limits });
  const times = { timeoutSeconds: 250, backgroundAfterSeconds: 0, backgroundTimeoutSeconds: 250 };
  const processes = new Processes("here", { maxPerSession: 3, maxInAll: 10 });
  const tool = execTool({ executor, limits, processes, times });
  return {
    ground,
    run: async (command, background = false) => (await ground.call(tool, { command, background })).content,
    allow: pace.allow,
    [Symbol.asyncDispose]: async () => {
      await processes.close();
      await pace.close();
      await ground[Symbol.asyncDispose]();
    },
  };
}

const takenBy = (folder: string) =>
  Number(execFileSync("du", ["-s", "--block-size=1", folder], { encoding: "utf8" }).split("\t")[0]);
/** Writes files of one step per permit, and `finished` at the end, which must not be reached. */
const fill =
  "i=0; while [ $i -lt 128 ]; do read -r go; dd if=/dev/zero of=f$i bs=1M count=4 conv=fsync 2>/dev/null; i=$((i + 1)); done < pace; echo > finished";

export function diskAttempts(): void {
  for (const setting of ["bubblewrap", "none"] as const) {
    const against = setting === "none" ? "plain isolation" : setting;
    const quota = { maxBytes: quotaBytes, minFreeBytes: 0 };

    attempt("a command fills the disk with many files", against, async () => {
      await using shell = await openShell(setting, quota);
      shell.allow();
      assert.match(await shell.run(fill), /the workspace exceeded its quota/);
      assert.equal(existsSync(join(shell.ground.inside, "finished")), false);
      assert.ok(takenBy(shell.ground.inside) < mostBytes);
    });

    attempt("a command fills the disk in the background, from a detached process", against, async () => {
      await using shell = await openShell(setting, quota);
      const mark = sleeper();
      await shell.run(`(setsid sh -c '${fill}' &); exec ${mark}`, true);
      await pollUntil(() => running(mark).length > 0, "it is running");
      shell.allow();
      await pollUntil(() => running(mark).length === 0, "it was stopped");
      assert.ok(takenBy(shell.ground.inside) < mostBytes);
      assert.equal(existsSync(join(shell.ground.inside, "finished")), false);
    });

    attempt("a command fills the inode table with empty files", against, async () => {
      await using shell = await openShell(setting, { maxBytes: 4 * mebibyte, minFreeBytes: 0 });
      shell.allow();
      const said = await shell.run(
        `perl -e 'open(P, "<", "pace"); for $n (1 .. 200000) { <P> unless $n % 1024; open(F, ">", "f$n"); close F } open(F, ">", "finished")'`,
      );
      assert.match(said, /the workspace exceeded its quota/);
      assert.equal(existsSync(join(shell.ground.inside, "finished")), false);
    });

    attempt("a command fills the disk with unlinked files", against, async () => {
      const { bavail, bsize } = statfsSync(quietDisk);
      await using shell = await openShell(
        setting,
        { maxBytes: 0, minFreeBytes: bavail * bsize - quotaBytes },
        quietDisk,
      );
      shell.allow();
      const hidden = `perl -e 'open(P, "<", "pace"); for $n (1 .. 600) { <P>; open($f[$n], "+>", "gone"); unlink("gone"); for (1 .. 4) { syswrite($f[$n], "x" x (1 << 20)) } open(S, ">", "so-far"); print S $n; close S } open(F, ">", "finished")'`;
      const said = await shell.run(hidden);
      assert.match(said, /the disk of the workspace is nearly full/);
      assert.equal(existsSync(join(shell.ground.inside, "finished")), false);
      assert.ok(Number(readFileSync(join(shell.ground.inside, "so-far"), "utf8")) < 600);
    });

    attempt("a command keeps filling a full workspace, while others may still free space in it", against, async () => {
      await using shell = await openShell(setting, quota);
      const { inside } = shell.ground;
      writeFileSync(join(inside, "full"), Buffer.alloc(quotaBytes + mebibyte, 1));
      shell.allow();
      assert.match(await shell.run(fill), /the workspace exceeded its quota/);
      assert.equal(existsSync(join(inside, "finished")), false);
      assert.ok(takenBy(inside) < mostBytes);
      const written = await shell.ground.call(writeTool, { path: "more.txt", content: "more" });
      assert.match(written.content, /The workspace is full/);
      assert.match(await shell.run("rm -f full f*; echo made room"), /made room\n\[exit code 0/);
      assert.equal((await shell.ground.call(writeTool, { path: "more.txt", content: "more" })).isError, false);
    });
  }
}
