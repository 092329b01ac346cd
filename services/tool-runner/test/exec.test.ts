// exec with hostile or careless commands: in bubblewrap, and without isolation.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, readlink, stat } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import type { IsolationLevel } from "@parley/contracts";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { openExecutor, type Executor } from "../src/sandbox/executor.ts";
import {
  chooseIsolation,
  describeIsolation,
  containmentOf,
  isGvisor,
  isolationTag,
  missingIsolation,
  type IsolationSetting,
} from "../src/sandbox/isolation.ts";
import { defaultExecLimits, describeLimits, type ExecLimits } from "../src/sandbox/limits.ts";
import { OutputWindow } from "../src/sandbox/output.ts";
import { Processes } from "../src/processes/processes.ts";
import type { ToolOutput } from "../src/tool/tool.ts";
import { execTool } from "../src/tools/exec.ts";
import { readTool } from "../src/tools/read.ts";
import { bwrap, running, sleeper } from "./support/commands.ts";
import { makeWorkspaceFixture, secret, type WorkspaceFixture } from "./support/workspace-fixture.ts";

const limits: ExecLimits = {
  ...defaultExecLimits(totalmem()),
  maxProcesses: 100,
  maxMemoryBytes: 256 * 1024 * 1024,
};
/** Commands stay in the foreground and are not stopped, however busy the machine is; tests of a timeout set their own. */
const times = { timeoutSeconds: 250, backgroundAfterSeconds: 0, backgroundTimeoutSeconds: 60 };
/** Timeout of commands that have to print something before it. */
const shortSeconds = 3;

interface Exec extends AsyncDisposable {
  ground: WorkspaceFixture;
  executor: Executor;
  processes: Processes;
  limitedBy: string;
  run(args: Record<string, unknown>, signal?: AbortSignal): Promise<ToolOutput>;
}

async function makeExec(
  setting: IsolationSetting,
  program = bwrap ?? "bwrap",
  minimum: IsolationLevel = "none",
  limited: ExecLimits = limits,
): Promise<Exec> {
  const ground = await makeWorkspaceFixture();
  const executor = await openExecutor({
    workspace: ground.workspace,
    setting,
    minimum,
    bwrap: program,
    searchPath: "/usr/bin",
    limits: limited,
  });
  const processes = new Processes("here", { maxPerSession: 3, maxInAll: 10 });
  const tool = execTool({ executor, limits: limited, processes, times });
  return {
    ground,
    executor,
    processes,
    limitedBy: executor.limitedBy,
    run: (args, signal) => ground.call(tool, args, signal),
    [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
  };
}

for (const setting of ["bubblewrap", "none"] as const) {
  const skip = setting === "bubblewrap" && bwrap === undefined ? "no bubblewrap here" : false;
  describe(`any command, isolation ${setting}`, { skip }, () => {
    let exec: Exec;
    before(async () => {
      exec = await makeExec(setting);
    });
    after(async () => {
      await exec[Symbol.asyncDispose]();
    });

    // design: 000.16
    test("returns both outputs in order, with the exit code and the isolation", async () => {
      const { content, isError } = await exec.run({ command: "echo 1; echo 2 >&2; echo 3; echo 4 >&2; exit 7" });
      assert.equal(isError, false, "an exit code is a result, not a failure");
      assert.match(content, /^1\n2\n3\n4\n\[exit code 7 · \d+\.\d s · isolation: (bubblewrap|NONE)/);
    });

    test("runs in the workspace, where the file tools see the command's files", async () => {
      await exec.run({ command: "mkdir -p a/b && cd a/b && echo hello > f.txt" });
      assert.match((await exec.ground.call(readTool, { path: "a/b/f.txt" })).content, /hello/);
      assert.match((await exec.run({ command: "cat f.txt; pwd", workdir: "a/b" })).content, /^hello\n\/.*a\/b\n/);
      assert.match((await exec.run({ command: "true", workdir: "../outside" })).content, /outside the workspace/);
    });

    test("hides the service's environment", async () => {
      process.env["PARLEY_CANARY"] = "canary-value";
      const { content } = await exec.run({ command: "env; cat /proc/self/environ | tr '\\0' '\\n'" });
      assert.doesNotMatch(content, /canary|PARLEY_NATS|NODE/);
      assert.match(content, /^HOME=/m);
    });

    test("sends SIGTERM at the timeout, and returns the output of the trap", async () => {
      const { content, isError } = await exec.run({
        command: "trap 'echo last word; exit 0' TERM; echo begun; while :; do sleep 0.05; done",
        timeout_seconds: shortSeconds,
      });
      assert.equal(isError, true);
      assert.match(content, /begun/);
      assert.match(content, /last word/);
      assert.match(content, /Stopped: the command did not end within 3 seconds/);
    });

    test("kills a command that ignores SIGTERM two seconds later", async () => {
      const sleep = sleeper();
      const started = performance.now();
      const { content } = await exec.run({
        command: `trap '' TERM; echo deaf; ${sleep}`,
        timeout_seconds: shortSeconds,
      });
      const seconds = (performance.now() - started) / 1_000;
      assert.match(content, /deaf/);
      assert.ok(seconds >= shortSeconds + 1.9, `${seconds} s`);
      assert.deepEqual(running(sleep), []);
    });

    test("ends a background process that holds the output open, without delaying the call", async () => {
      const sleep = sleeper();
      const { content, isError } = await exec.run({
        command: `${sleep} & setsid ${sleep} & (setsid sh -c '${sleep}' &) ; echo over`,
      });
      assert.equal(isError, false);
      assert.match(content, /^over\n/);
      assert.deepEqual(running(sleep), []);
    });

    test("starts nothing when the call was cancelled before", async () => {
      const command = "echo ran > ran";
      const { content, isError } = await exec.run({ command, background: true }, AbortSignal.abort());
      assert.equal(isError, true);
      assert.match(content, /was not started/);
      assert.equal(existsSync(join(exec.ground.inside, "ran")), false);
    });

    test("stops a background command when the call is cancelled while it starts", async () => {
      const sleep = sleeper();
      const control = new AbortController();
      const executor: Executor = {
        ...exec.executor,
        start: async (command) => {
          const started = await exec.executor.start(command);
          control.abort(new Error("cancelled"));
          return started;
        },
      };
      const tool = execTool({ executor, limits, processes: exec.processes, times });
      const { content, isError } = await exec.ground.call(tool, { command: sleep, background: true }, control.signal);
      assert.equal(isError, true);
      assert.doesNotMatch(content, /in the background/);
      assert.deepEqual(exec.processes.ofSession("session"), []);
      assert.deepEqual(running(sleep), []);
    });

    // design: 000.8
    test("ends the whole process tree when the call is cancelled", async () => {
      const sleep = sleeper();
      const control = new AbortController();
      const ending = exec.run({ command: `${sleep} & setsid ${sleep} & echo ready > started; wait` }, control.signal);
      const mark = join(exec.ground.inside, "started");
      await pollUntil(async () => (await readFile(mark, "utf8").catch(() => "")) !== "", "the start of the command");
      control.abort(new Error("cancelled"));
      const { isError } = await ending;
      assert.equal(isError, true);
      assert.deepEqual(running(sleep), []);
    });

    // design: 000.16, 001.6e
    test("shows both ends of a long output and the call that reads the rest", async () => {
      const { content } = await exec.run({ command: "seq 1 200000" });
      assert.ok(content.length < 30_000, `${content.length} characters`);
      assert.match(content, /^1\n2\n3\n/);
      assert.match(content, /\n199999\n200000\n\[exit code 0/);
      const notice = /\[… (\d+) of (\d+) bytes are omitted here; .* Read on with: read\((\{.*\})\)\]/.exec(content);
      assert.ok(notice !== null);
      assert.equal(Number(notice[2]), 1_288_895);
      const page = await exec.ground.call(readTool, JSON.parse(notice[3] ?? ""));
      assert.match(page.content, /^ {5}1\t1\n {5}2\t2\n/);
      const { path } = JSON.parse(notice[3] ?? "") as { path: string };
      assert.equal((await stat(join(exec.ground.inside, path))).size, 1_288_895);
    });

    test("loses no output of a command that ends while the output is still being read", async () => {
      for (let round = 0; round < 10; round++) {
        const { content } = await exec.run({ command: "head -c 50000 /dev/zero | tr '\\0' y; seq 1 20000" });
        assert.match(content, /^y{14000}\n/);
        assert.match(content, /of 158894 bytes are omitted here; the first 158894 bytes of the output are saved\./);
        assert.match(content, /\n19999\n20000\n\[exit code 0/);
      }
    });

    test("stops a command that prints 10 GB early, at low memory and disk cost", async () => {
      // Several times what the garbage of the read chunks takes before it is collected.
      const maxOutputBytes = 256 * 1024 * 1024;
      await using generous = await makeExec(setting, undefined, undefined, { ...limits, maxOutputBytes });
      const before = process.memoryUsage.rss();
      const { content, isError } = await generous.run({ command: "yes 'all work and no play' | head -c 10G" });
      assert.equal(isError, true);
      assert.match(content, /Stopped: the command printed more than 256 MiB/);
      const grownMib = (process.memoryUsage.rss() - before) / 1024 / 1024;
      assert.ok(grownMib < 128, `memory grew by ${grownMib.toFixed(1)} MiB`);
      const folder = join(generous.ground.inside, ".parley/output");
      const names = await readdir(folder);
      assert.equal(names.length, 1);
      for (const name of names) assert.ok((await stat(join(folder, name))).size <= 10 * 1024 * 1024);
    });

    test("ends a fork bomb at the process limit and keeps running", async () => {
      // The shell that has to end starts nothing but the bomb: otherwise it would retry for many seconds.
      const command = "bomb() { bomb | bomb & }; sleep 1 & second=$!; (bomb) & wait $second";
      const { content } = await exec.run({ command });
      // Refused by the kernel, counted by the kernel, or counted by the service.
      assert.match(content, /limit of 100 processes|more than 100 processes|Resource temporarily unavailable/);
      assert.doesNotMatch(content, /did not end within/);
      assert.match((await exec.run({ command: "echo alive" })).content, /^alive\n/);
    });

    test("ends a command that exceeds its memory limit, not the service", async () => {
      const one = await exec.run({ command: "perl -e '$x = \"a\" x (600 << 20); sleep 1'" });
      assert.doesNotMatch(one.content, /exit code 0/);
      // Each is below the limit of one process; together they exceed the limit of the command.
      const child = '$x = "a" x (110 << 20); sleep 200; exit';
      const program = `@all = map { my $one = fork; if (!$one) { ${child} } $one } 1..4; wait; kill TERM => @all`;
      const many = await exec.run({ command: `perl -e '${program}'` });
      assert.match(many.content, /256 MiB of memory/);
    });

    test("limits the size of a file", async () => {
      const write = "dd if=/dev/zero of=huge bs=1M seek=1020 count=8";
      const { content } = await exec.run({ command: `${write}; stat -c %s huge; rm -f huge` });
      assert.match(content, /^1073741824$/m);
    });

    test("handles binary output", async () => {
      const { content } = await exec.run({ command: "head -c 300000 /dev/urandom" });
      assert.ok(content.length < 31_000);
    });
  });
}

describe("in bubblewrap", { skip: bwrap === undefined ? "no bubblewrap here" : false }, () => {
  // design: 000.34
  test("has no network and no other processes, and cannot write the system or kernel settings", async () => {
    await using exec = await makeExec("auto");
    const { content } = await exec.run({
      command: [
        "(echo > /dev/tcp/1.1.1.1/53) 2>/dev/null && echo NETWORK",
        "getent hosts example.com && echo DNS",
        "for f in /x /usr/x /etc/x /dev/x /proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches /proc/sysrq-trigger; do (: >> $f) 2>/dev/null && echo WRITES $f; done",
        "unshare -U true 2>/dev/null && echo NAMESPACES",
        "mount -t tmpfs none /mnt 2>/dev/null && echo MOUNTS",
        "grep -E 'CapEff|NoNewPrivs' /proc/self/status",
        "ls /proc | grep -c '^[0-9]'",
        `cat ${exec.ground.outside}/secret.txt`,
        "ls /root /home /var /run 2>/dev/null | head -3",
        "id -u; whoami; pwd",
      ].join("\n"),
    });
    assert.doesNotMatch(content, /NETWORK|DNS|WRITES|NAMESPACES|MOUNTS/);
    assert.doesNotMatch(content, new RegExp(secret));
    assert.match(content, /CapEff:\s+0{16}\nNoNewPrivs:\s+1\n/);
    assert.match(content, /\n1000\nagent\n\/workspace\n/);
    const processes = Number(/NoNewPrivs:\s+1\n(\d+)\n/.exec(content)?.[1]);
    assert.ok(processes > 0 && processes < 10, `${processes} processes`);
  });

  test("resolves links out of the workspace to nothing", async () => {
    await using exec = await makeExec("auto");
    // `cat` writes its error in pieces; on one stream the output of `ls` cannot come between them.
    const command = `ln -s ${exec.ground.outside} out; cat out/secret.txt 2>&1; ls ..`;
    const { content } = await exec.run({ command });
    assert.match(content, /cat: .*No such file or directory/);
    assert.doesNotMatch(content, new RegExp(secret));
    assert.match((await exec.ground.call(readTool, { path: "out/secret.txt" })).content, /outside the workspace/);
  });

  test("limits the in-memory file systems /tmp and /dev/shm", async () => {
    await using exec = await makeExec("auto");
    const { content } = await exec.run({ command: "df -m /tmp /dev/shm | awk 'NR>1 { print $6, $2 }'" });
    assert.match(content, /^\/tmp 512$/m);
    assert.match(content, /^\/dev\/shm 64$/m);
  });

  test("leaves no file of the trial run in the workspace", async () => {
    await using exec = await makeExec("auto");
    assert.deepEqual(await readdir(exec.ground.inside), []);
  });
});

describe("the choice of isolation", () => {
  test("refuses with instructions when bubblewrap is missing and isolation is auto", async () => {
    await using exec = await makeExec("auto", "/nonexistent/bwrap");
    const { content, isError } = await exec.run({ command: "touch ran" });
    assert.equal(isError, true);
    assert.match(content, /exec is refused: .*bwrap is not installed/);
    assert.match(content, /apt-get install bubblewrap/);
    assert.match(content, /isolation = "container"/);
    assert.equal(existsSync(join(exec.ground.inside, "ran")), false);
  });

  test("refuses when bwrap exits with 0 but isolates nothing", async () => {
    // A program that ignores its arguments and exits with 0.
    await using exec = await makeExec("auto", "/bin/true");
    assert.match((await exec.run({ command: "touch ran" })).content, /exec is refused/);
    assert.equal(existsSync(join(exec.ground.inside, "ran")), false);
  });

  // design: 000.34c
  test("runs without a sandbox only when the setting says so", () => {
    for (const setting of ["auto", "bubblewrap", "container", "none", "off"] as const) {
      const without = chooseIsolation(setting, { probe: { works: false, reason: "x" }, gvisor: false });
      const expected = setting === "auto" || setting === "bubblewrap" ? "refused" : setting;
      assert.equal(without.kind, expected);
      assert.notEqual(describeIsolation(without), "");
    }
  });

  test("refuses a command below the required isolation, and runs it at that level", () => {
    const works = { works: true as const, bwrap: "bwrap", disableUserNamespaces: true };
    const levels = ["none", "container", "gvisor", "bubblewrap"] as const;
    const runs = (setting: IsolationSetting, gvisor: boolean) =>
      levels.filter((level) => chooseIsolation(setting, { probe: works, gvisor }, level).kind !== "refused");
    assert.deepEqual(runs("none", false), ["none"]);
    assert.deepEqual(runs("container", false), ["none", "container"]);
    assert.deepEqual(runs("container", true), ["none", "container", "gvisor"]);
    assert.deepEqual(runs("bubblewrap", false), ["none", "container", "bubblewrap"]);
    assert.deepEqual(runs("auto", true), [...levels]);
    assert.equal(chooseIsolation("container", { probe: works, gvisor: true }).kind, "gvisor");
    const refused = chooseIsolation("container", { probe: works, gvisor: false }, "bubblewrap");
    assert.match(
      describeIsolation(refused),
      /^exec refused: at least bubblewrap is required, and this tool-runner provides container$/,
    );
  });

  test("counts a container with internet access as uncontained, and bubblewrap as a sandbox", () => {
    const works = { works: true as const, bwrap: "bwrap", disableUserNamespaces: true };
    const found = (setting: IsolationSetting, internet: boolean, gvisor = false) =>
      chooseIsolation(setting, { probe: works, gvisor, internet });
    for (const gvisor of [false, true]) {
      assert.equal(containmentOf(found("container", false, gvisor)), "container");
      assert.equal(containmentOf(found("container", true, gvisor)), "none");
      assert.match(describeIsolation(found("container", true, gvisor)), /reaches the internet/);
      assert.match(isolationTag(found("container", true, gvisor)), /with internet access/);
    }
    assert.equal(containmentOf(found("auto", true)), "sandbox");
    assert.doesNotMatch(describeIsolation(found("auto", true)), /internet/);
    assert.equal(containmentOf(found("none", false)), "none");
  });

  test("refuses a single call that requires a higher isolation", () => {
    const found = { kind: "container" } as const;
    assert.equal(missingIsolation(found, undefined), undefined);
    assert.equal(missingIsolation(found, "container"), undefined);
    assert.match(
      missingIsolation(found, "gvisor")?.reason ?? "",
      /require at least gvisor, and this tool-runner provides container/,
    );
    assert.equal(missingIsolation({ kind: "gvisor" }, "container"), undefined);
    assert.equal(missingIsolation({ kind: "none" }, "bubblewrap")?.kind, "refused");
  });

  test("recognizes gVisor by its kernel version, and no other kernel", () => {
    assert.equal(isGvisor("Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n"), true);
    assert.equal(isGvisor("Linux version 4.4.0-210-generic (buildd@lgw01) #242-Ubuntu SMP Fri Apr 16 2021\n"), false);
    assert.equal(isGvisor(""), false);
  });

  test("names the setting when a command requires a higher isolation, and does not run it", async () => {
    await using exec = await makeExec("none", bwrap ?? "bwrap", "bubblewrap");
    const { content, isError, isolation } = await exec.run({ command: "touch ran" });
    assert.equal(isError, true);
    assert.match(
      content,
      /exec is refused: at least bubblewrap is required, and this tool-runner provides none\.\n.*`min_isolation`/,
    );
    assert.equal(isolation, undefined);
    assert.equal(existsSync(join(exec.ground.inside, "ran")), false);
  });

  test("reports the isolation of each result in a separate field", async () => {
    for (const setting of ["none", "container", ...(bwrap === undefined ? [] : ["bubblewrap" as const])] as const) {
      await using exec = await makeExec(setting);
      assert.equal((await exec.run({ command: "true" })).isolation, setting);
      assert.equal((await exec.run({ command: "sleep 5", background: true })).isolation, setting);
    }
  });

  // design: 000.34c
  test("states in the result that a command ran unprotected", async () => {
    await using exec = await makeExec("none");
    assert.match((await exec.run({ command: "true" })).content, /isolation: NONE \(the command ran unprotected/);
    await using inContainer = await makeExec("container");
    assert.match((await inContainer.run({ command: "true" })).content, /isolation: container only/);
  });
});

describe("a command that cannot be started", () => {
  const command = "你".repeat(50_000);

  test("is refused by its length in bytes", async () => {
    await using exec = await makeExec("none");
    const { content, isError } = await exec.run({ command });
    assert.equal(isError, true);
    assert.match(content, /longer than 131071 bytes/);
    assert.match((await exec.run({ command: `echo ${"x".repeat(60_000)} | wc -c` })).content, /^60001\n/);
  });

  test("releases its directory and its watch of the quota", async () => {
    await using ground = await makeWorkspaceFixture({ maxBytes: 1024 * 1024, minFreeBytes: 0 });
    const { workspace, inside } = ground;
    await mkdir(join(inside, "here"));
    const options = { setting: "none" as const, bwrap: "bwrap", searchPath: "/usr/bin", limits };
    const executor = await openExecutor({ ...options, workspace });
    const watches: number[] = [];
    const watch = workspace.quota.watch.bind(workspace.quota);
    workspace.quota.watch = async (stop) => {
      const unwatch = await watch(stop);
      watches.push(1);
      return () => {
        watches.pop();
        unwatch();
      };
    };
    await using place = await workspace.resolve("here");
    const start = executor.start({
      command,
      workspace,
      place,
      isOwners: false,
      interactive: false,
      callName: "call",
      onOutput: () => undefined,
    });
    await assert.rejects(start, { code: "E2BIG" });
    assert.deepEqual(watches, []);
    const open = (await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ""));
    assert.deepEqual(
      (await Promise.all(open)).filter((path) => path === join(inside, "here")),
      [],
    );
  });
});

describe("the output window", () => {
  // design: 002.7
  test("property: keeps both ends, counts the missing bytes, and never grows", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: fc.constantFrom("a", "é", "漢", "🙂", "\n"), maxLength: 40 }), { maxLength: 30 }),
        fc.integer({ min: 8, max: 60 }),
        (texts, shownBytes) => {
          const window = new OutputWindow(shownBytes);
          for (const text of texts) window.push(Buffer.from(text));
          const whole = texts.join("");
          const { head, tail, missingBytes } = window.ends();
          assert.ok(whole.startsWith(head) && whole.endsWith(tail));
          assert.equal(Buffer.byteLength(head) + Buffer.byteLength(tail) + missingBytes, Buffer.byteLength(whole));
          if (Buffer.byteLength(whole) <= shownBytes) assert.equal(head, whole);
          else assert.ok(Buffer.byteLength(head) + Buffer.byteLength(tail) >= shownBytes - 6);
        },
      ),
      { numRuns: propertyRuns(2_000) },
    );
  });
});

describe("CPU time", () => {
  for (const setting of ["bubblewrap", "none"] as const) {
    const skip = setting === "bubblewrap" && bwrap === undefined ? "no bubblewrap here" : false;
    test(`stops a process that exceeds its CPU time and reports it, isolation ${setting}`, { skip }, async () => {
      await using exec = await makeExec(setting, bwrap ?? "bwrap", "none", { ...limits, maxCpuSeconds: 1 });
      const { content } = await exec.run({ command: "while :; do :; done" });
      assert.match(content, /it exceeded its CPU time limit of 1 s/);
      assert.match(exec.limitedBy, /cpu: rlimit per process; .*time: clock$/);
    });
  }
});

describe("CPU limits of a command", () => {
  const busy = "for i in 1 2; do (while :; do :; done) & done; sleep 1; kill %1 %2; wait; times";
  for (const setting of ["bubblewrap", "none"] as const) {
    test(`limits the CPU usage of all its processes together, isolation ${setting}`, async (t) => {
      if (setting === "bubblewrap" && bwrap === undefined) return t.skip("no bubblewrap here");
      await using exec = await makeExec(setting, bwrap ?? "bwrap", "none", { ...limits, maxCpus: 0.25 });
      if (!exec.limitedBy.includes("cpu: cgroup")) return t.skip("no CPU control groups here");
      const { content } = await exec.run({ command: busy });
      // "0m0.250s 0m0.010s": user and system time of its children.
      const used = [...(content.match(/^.*s$/gm)?.at(-1) ?? "").matchAll(/(\d+)m([\d.]+)s/g)];
      const seconds = used.reduce((sum, [, minutes, rest]) => sum + Number(minutes) * 60 + Number(rest), 0);
      assert.ok(used.length > 0 && seconds < 0.6, `a quarter of a CPU for about a second, and it took ${seconds} s`);
    });
  }

  test("are reported as not enforced without control groups", () => {
    const held = { counted: false, cpus: false, sandboxed: true };
    assert.match(
      describeLimits({ ...limits, maxCpus: 2, maxCpuSeconds: 1 }, held),
      /cpu: max_cpus is not enforced here, rlimit per process;/,
    );
    assert.match(describeLimits({ ...limits, maxCpus: 2 }, { ...held, cpus: true }), /cpu: cgroup;/);
  });
});
