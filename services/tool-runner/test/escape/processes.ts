// Attempts of commands to outlive their call, and to exceed their resource limits.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { findControlGroups } from "../../src/sandbox/cgroup.ts";
import { openExecutor } from "../../src/sandbox/executor.ts";
import { defaultExecLimits } from "../../src/sandbox/limits.ts";
import { Processes } from "../../src/processes/processes.ts";
import { execTool } from "../../src/tools/exec.ts";
import { alive, bwrap, running, sleeper } from "../support/commands.ts";
import { makeWorkspaceFixture, secret, type WorkspaceFixture } from "../support/workspace-fixture.ts";
import { kill, launch } from "../support/launch.ts";
import { attempt } from "./ledger.ts";
import type { RunnerFixture } from "../support/runner-fixture.ts";
import { pollUntil } from "@parley/testing/until";

const mebibyte = 1024 * 1024;
const limits = {
  ...defaultExecLimits(totalmem()),
  maxProcesses: 60,
  maxMemoryBytes: 128 * mebibyte,
  maxFileBytes: 8 * mebibyte,
  maxTemporaryBytes: 16 * mebibyte,
  maxOutputBytes: 4 * mebibyte,
  maxSpillBytes: mebibyte,
};
const killsWithin = 6_000;

interface Shell extends AsyncDisposable {
  ground: WorkspaceFixture;
  run(command: string, timeoutSeconds?: number): Promise<string>;
}

/** `exec` with limits small enough to be reached without harm. */
async function openShell(setting: "bubblewrap" | "none"): Promise<Shell> {
  const ground = await makeWorkspaceFixture();
  const { workspace } = ground;
  const executor = await openExecutor({ workspace, setting, bwrap: bwrap ?? "bwrap", searchPath: "/usr/bin", limits });
  const times = { timeoutSeconds: 20, backgroundAfterSeconds: 0, backgroundTimeoutSeconds: 30 };
  const processes = new Processes("here", { maxPerSession: 3, maxInAll: 10 });
  const tool = execTool({ executor, limits, processes, times });
  return {
    ground,
    run: async (command, timeout_seconds = 20) => (await ground.call(tool, { command, timeout_seconds })).content,
    [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
  };
}

/** `alone`: servers without tool-runners other than those started here. */
export async function processAttempts(alone: () => RunnerFixture): Promise<void> {
  // Without control groups, plain isolation finds its processes only by process group and environment variable.
  const uncounted = (await findControlGroups()) === undefined ? "no control groups here" : undefined;
  for (const setting of ["bubblewrap", "none"] as const) {
    const against = setting === "none" ? "plain isolation" : setting;

    attempt("a fork bomb fills the process table and outlives its call", against, async () => {
      await using shell = await openShell(setting);
      const name = `bomb-${randomUUID()}`;
      const begun = join(shell.ground.inside, "begun");
      const script = `#!/bin/sh\necho >> begun\n./${name} & ./${name} & wait\n`;
      await writeFile(join(shell.ground.inside, name), script, { mode: 0o755 });
      let most = 0;
      const watch = setInterval(() => (most = Math.max(most, running(`/bin/sh ./${name}`).length)), 20);
      await shell.run(`./${name}`, 2);
      clearInterval(watch);
      assert.ok(readFileSync(begun, "utf8").length > 1, "the fork bomb started");
      assert.ok(most <= 3 * limits.maxProcesses, `${most} at once`);
      assert.deepEqual(alive(`/bin/sh ./${name}`), []);
      await pollUntil(() => running(`/bin/sh ./${name}`).length === 0, "no process of it is left");
    });

    attempt("a command ignores SIGTERM", against, async () => {
      await using shell = await openShell(setting);
      const mark = sleeper();
      const started = performance.now();
      await shell.run(`trap '' TERM INT HUP; ${mark}; ${mark}`, 1);
      assert.ok(performance.now() - started < killsWithin);
      assert.deepEqual(running(mark), []);
    });

    attempt("a daemon that forks twice, in its own session, outlives its call", against, async () => {
      await using shell = await openShell(setting);
      const mark = sleeper();
      await shell.run(`(setsid sh -c '(nohup ${mark} >/dev/null 2>&1 &)' &); until pgrep -f '^${mark}'; do :; done`);
      assert.deepEqual(running(mark), []);
    });

    attempt(
      "a daemon that empties its environment, in its own session, outlives its call",
      against,
      async () => {
        await using shell = await openShell(setting);
        const mark = sleeper();
        await shell.run(`(env -i setsid sh -c '(${mark} >/dev/null 2>&1 &)' &); until pgrep -f '^${mark}'; do :; done`);
        assert.deepEqual(running(mark), []);
      },
      setting === "none" ? uncounted : undefined,
    );

    attempt("a process holds the call open through its standard output", against, async () => {
      await using shell = await openShell(setting);
      const mark = sleeper();
      const started = performance.now();
      await shell.run(`setsid ${mark} & echo over`);
      assert.ok(performance.now() - started < killsWithin);
      assert.deepEqual(running(mark), []);
    });

    attempt("a command outlives a tool-runner that is killed", against, async () => {
      const marked = [sleeper(), sleeper(), sleeper()];
      const runner = await launch(alone(), `killed-${setting}`, {
        PARLEY_EXEC_ISOLATION: setting,
        PARLEY_BWRAP: bwrap ?? "",
      });
      const [request] = await alone().plan([
        {
          tool: "exec",
          class: "once",
          input: { command: `${marked[0]} & setsid ${marked[1]} & (setsid sh -c '${marked[2]} &' &); wait` },
        },
      ]);
      assert.ok(request !== undefined);
      alone()
        .call(request, 3_000)
        .catch(() => undefined);
      await pollUntil(() => marked.every((mark) => running(mark).length === 1), "the command is running");
      await kill(runner);
      await pollUntil(() => marked.every((mark) => running(mark).length === 0), "no process of it is left");
    });

    attempt("a command exceeds its memory limit, in one process and in many", against, async () => {
      await using shell = await openShell(setting);
      await shell.run(`perl -e '$x = "a" x (400 << 20); open F, ">", "survived-one"'`);
      await shell.run(
        `for i in 1 2 3 4; do perl -e '$x = "a" x (60 << 20); sleep 2; open F, ">", "survived-$ARGV[0]"' $i & done; wait`,
      );
      const survived = readdirSync(shell.ground.inside).filter((name) => name.startsWith("survived"));
      assert.ok(!survived.includes("survived-one"));
      assert.ok(survived.length < 4, survived.join(" "));
    });

    attempt("a command fills the disk with one file", against, async () => {
      await using shell = await openShell(setting);
      await shell.run("head -c 64M /dev/zero > huge; truncate -s 64M sparse; fallocate -l 64M reserved");
      for (const name of ["huge", "sparse", "reserved"]) {
        const path = join(shell.ground.inside, name);
        assert.ok(!existsSync(path) || statSync(path).size <= limits.maxFileBytes, name);
      }
    });

    attempt("a command fills the disk with its output", against, async () => {
      await using shell = await openShell(setting);
      const words = `all work and no play ${randomUUID()}`;
      await shell.run(`yes '${words}'`);
      const folder = join(shell.ground.inside, ".parley/output");
      for (const name of readdirSync(folder)) assert.ok(statSync(join(folder, name)).size <= limits.maxSpillBytes);
      assert.deepEqual(running(`yes ${words}`), []);
    });

    attempt("the file of a long output, or its folder, is a link to the outside", against, async () => {
      await using shell = await openShell(setting);
      const { inside, outside } = shell.ground;
      await mkdir(join(inside, ".parley"));
      await symlink(outside, join(inside, ".parley/output"));
      await shell.run("seq 1 100000");
      assert.deepEqual(readdirSync(outside), ["secret.txt"]);
      await shell.run(
        "rm .parley/output; mkdir .parley/output; for i in $(seq 1 50); do ln -s ../../../outside/secret.txt .parley/output/turn-$i.txt; done",
      );
      await shell.run("seq 1 100000");
      assert.equal(readFileSync(join(outside, "secret.txt"), "utf8"), secret);
    });
  }

  attempt("a command fills the memory used by /tmp", "bubblewrap", async () => {
    await using shell = await openShell("bubblewrap");
    await shell.run("for i in 1 2 3 4; do head -c 7M /dev/zero > /tmp/f$i; done; du -sm /tmp | cut -f1 > filled");
    assert.ok(Number(readFileSync(join(shell.ground.inside, "filled"), "utf8")) <= 17);
  });
}
