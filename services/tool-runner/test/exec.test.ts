// exec as a hostile or clumsy command meets it: behind bubblewrap, and without a wall.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { IsolationLevel } from "@parley/contracts";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { openExecutor } from "../src/exec/executor.ts";
import {
  chooseIsolation,
  describeIsolation,
  containmentOf,
  isGvisor,
  isolationTag,
  lacking,
  type IsolationSetting,
} from "../src/exec/isolation.ts";
import { defaultExecLimits, describeLimits, type ExecLimits } from "../src/exec/limits.ts";
import { OutputWindow } from "../src/exec/output.ts";
import { Processes } from "../src/process/processes.ts";
import type { ToolOutput } from "../src/tool.ts";
import { execTool } from "../src/tools/exec.ts";
import { readTool } from "../src/tools/read.ts";
import { bwrap, running, sleeper } from "./support/commands.ts";
import { makeGround, secret, type Ground } from "./support/ground.ts";

const limits: ExecLimits = {
  ...defaultExecLimits(totalmem()),
  maxProcesses: 100,
  maxMemoryBytes: 256 * 1024 * 1024,
};
interface Exec extends AsyncDisposable {
  ground: Ground;
  limitedBy: string;
  run(args: Record<string, unknown>, signal?: AbortSignal): Promise<ToolOutput>;
}

async function makeExec(
  setting: IsolationSetting,
  program = bwrap ?? "bwrap",
  minimum: IsolationLevel = "none",
  limited: ExecLimits = limits,
): Promise<Exec> {
  const ground = await makeGround();
  const executor = await openExecutor({
    workspace: ground.workspace,
    setting,
    minimum,
    bwrap: program,
    searchPath: "/usr/bin",
    limits: limited,
  });
  const processes = new Processes("here", { maxPerSession: 3, maxInAll: 10 });
  const times = { timeoutSeconds: 30, backgroundAfterSeconds: 10, backgroundTimeoutSeconds: 60 };
  const tool = execTool({ executor, limits: limited, processes, times });
  return {
    ground,
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
    test("both outputs come in the order they were written, with the exit code and the isolation", async () => {
      const { content, isError } = await exec.run({ command: "echo 1; echo 2 >&2; echo 3; echo 4 >&2; exit 7" });
      assert.equal(isError, false, "an exit code is a result, not a failure");
      assert.match(content, /^1\n2\n3\n4\n\[exit code 7 · \d+\.\d s · isolation: (bubblewrap|NONE)/);
    });

    test("the command works in the workspace, and its files are there for the file tools", async () => {
      await exec.run({ command: "mkdir -p a/b && cd a/b && echo hello > f.txt" });
      assert.match((await exec.ground.call(readTool, { path: "a/b/f.txt" })).content, /hello/);
      assert.match((await exec.run({ command: "cat f.txt; pwd", workdir: "a/b" })).content, /^hello\n\/.*a\/b\n/);
      assert.match((await exec.run({ command: "true", workdir: "../outside" })).content, /outside the workspace/);
    });

    test("nothing of our environment is seen", async () => {
      process.env["PARLEY_CANARY"] = "canary-value";
      const { content } = await exec.run({ command: "env; cat /proc/self/environ | tr '\\0' '\\n'" });
      assert.doesNotMatch(content, /canary|PARLEY_NATS|NODE/);
      assert.match(content, /^HOME=/m);
    });

    test("a command that goes on for too long is asked to end, and may say a last word", async () => {
      const { content, isError } = await exec.run({
        command: "trap 'echo last word; exit 0' TERM; echo begun; while :; do sleep 0.05; done",
        timeout_seconds: 1,
      });
      assert.equal(isError, true);
      assert.match(content, /begun/);
      assert.match(content, /last word/);
      assert.match(content, /Stopped: the command did not end within 1 seconds/);
    });

    test("a command that ignores SIGTERM is killed two seconds later", async () => {
      const sleep = sleeper();
      const started = performance.now();
      const { content } = await exec.run({ command: `trap '' TERM; echo deaf; ${sleep}`, timeout_seconds: 1 });
      const seconds = (performance.now() - started) / 1_000;
      assert.match(content, /deaf/);
      assert.ok(seconds >= 2.9 && seconds < 5, `${seconds} s`);
      assert.deepEqual(running(sleep), []);
    });

    test("a background process that holds the output open does not hold the call, and does not live on", async () => {
      const sleep = sleeper();
      const started = performance.now();
      const { content, isError } = await exec.run({
        command: `${sleep} & setsid ${sleep} & (setsid sh -c '${sleep}' &) ; echo over`,
      });
      assert.equal(isError, false);
      assert.match(content, /^over\n/);
      assert.ok(performance.now() - started < 3_000);
      assert.deepEqual(running(sleep), []);
    });

    test("cancelling ends the whole tree", async () => {
      const sleep = sleeper();
      const control = new AbortController();
      const ending = exec.run({ command: `${sleep} & setsid ${sleep} & echo ready > started; wait` }, control.signal);
      await untilExists(join(exec.ground.inside, "started"));
      const started = performance.now();
      control.abort(new Error("cancelled"));
      const { isError } = await ending;
      assert.equal(isError, true);
      assert.ok(performance.now() - started < 3_000);
      assert.deepEqual(running(sleep), []);
    });

    // design: 001.15
    test("long output shows both ends, says what is missing, and the call it names reads on", async () => {
      const { content } = await exec.run({ command: "seq 1 200000" });
      assert.ok(content.length < 30_000, `${content.length} characters`);
      assert.match(content, /^1\n2\n3\n/);
      assert.match(content, /\n199999\n200000\n\[exit code 0/);
      const notice = /\[… (\d+) of (\d+) bytes are missing here; .* Read on with: read\((\{.*\})\)\]/.exec(content);
      assert.ok(notice !== null);
      assert.equal(Number(notice[2]), 1_288_895);
      const page = await exec.ground.call(readTool, JSON.parse(notice[3] ?? ""));
      assert.match(page.content, /^ {5}1\t1\n {5}2\t2\n/);
      const { path } = JSON.parse(notice[3] ?? "") as { path: string };
      assert.equal((await stat(join(exec.ground.inside, path))).size, 1_288_895);
    });

    test("a command that ends while its long output is still taken in loses nothing of it", async () => {
      for (let round = 0; round < 10; round++) {
        const { content } = await exec.run({ command: "head -c 50000 /dev/zero | tr '\\0' y; seq 1 20000" });
        assert.match(content, /^y{14000}\n/);
        assert.match(content, /of 158894 bytes are missing here; the first 158894 bytes of the output are kept\./);
        assert.match(content, /\n19999\n20000\n\[exit code 0/);
      }
    });

    test("a command that prints 10 GB is stopped early and costs neither memory nor disk", async () => {
      const before = process.memoryUsage.rss();
      const { content, isError } = await exec.run({ command: "yes 'all work and no play' | head -c 10G" });
      assert.equal(isError, true);
      assert.match(content, /Stopped: the command printed more than 64 MiB/);
      const grownMib = (process.memoryUsage.rss() - before) / 1024 / 1024;
      assert.ok(grownMib < 80, `memory grew by ${grownMib.toFixed(1)} MiB`);
      const folder = join(exec.ground.inside, ".parley/output");
      for (const name of await readdir(folder)) assert.ok((await stat(join(folder, name))).size <= 10 * 1024 * 1024);
    });

    test("a fork bomb reaches its limit, ends, and the service goes on", async () => {
      // The shell that is to end starts nothing beside the bomb: it would try for many seconds.
      const command = "bomb() { bomb | bomb & }; sleep 1 & second=$!; (bomb) & wait $second";
      const { content } = await exec.run({ command, timeout_seconds: 3 });
      // Refused by the kernel, counted by it or by us.
      assert.match(content, /limit of 100 processes|more than 100 processes|Resource temporarily unavailable/);
      assert.doesNotMatch(content, /did not end within/);
      assert.match((await exec.run({ command: "echo alive" })).content, /^alive\n/);
    });

    test("a command that takes too much memory is ended, not the service", async () => {
      const one = await exec.run({ command: "perl -e '$x = \"a\" x (600 << 20); sleep 1'" });
      assert.doesNotMatch(one.content, /exit code 0/);
      // Each below the limit of one process, all of them above the limit of the command.
      const many = await exec.run({
        command: "for i in 1 2 3 4; do perl -e '$x = \"a\" x (110 << 20); sleep 2' & done; wait",
      });
      assert.match(many.content, /256 MiB of memory/);
    });

    test("a file cannot grow without end", async () => {
      const { content } = await exec.run({ command: "head -c 3G /dev/zero > huge; stat -c %s huge; rm -f huge" });
      assert.match(content, /^1073741824$/m);
    });

    test("bytes that are no text are no trouble", async () => {
      const { content } = await exec.run({ command: "head -c 300000 /dev/urandom" });
      assert.ok(content.length < 31_000);
    });
  });
}

describe("behind bubblewrap", { skip: bwrap === undefined ? "no bubblewrap here" : false }, () => {
  // design: 000.34
  test("there is no network, no other process, no way to write the system or the kernel's settings", async () => {
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

  test("links out of the workspace lead nowhere", async () => {
    await using exec = await makeExec("auto");
    const { content } = await exec.run({ command: `ln -s ${exec.ground.outside} out; cat out/secret.txt; ls ..` });
    assert.doesNotMatch(content, new RegExp(secret));
    assert.match((await exec.ground.call(readTool, { path: "out/secret.txt" })).content, /outside the workspace/);
  });

  test("what memory holds is limited: /tmp and /dev/shm", async () => {
    await using exec = await makeExec("auto");
    const { content } = await exec.run({ command: "df -m /tmp /dev/shm | awk 'NR>1 { print $6, $2 }'" });
    assert.match(content, /^\/tmp 512$/m);
    assert.match(content, /^\/dev\/shm 64$/m);
  });

  test("the trial run at the start leaves nothing in the workspace", async () => {
    await using exec = await makeExec("auto");
    assert.deepEqual(await readdir(exec.ground.inside), []);
  });
});

describe("the choice of isolation", () => {
  test("auto without bubblewrap refuses, and says how to enable it", async () => {
    await using exec = await makeExec("auto", "/nonexistent/bwrap");
    const { content, isError } = await exec.run({ command: "touch ran" });
    assert.equal(isError, true);
    assert.match(content, /exec is refused: .*bwrap is not installed/);
    assert.match(content, /apt-get install bubblewrap/);
    assert.match(content, /isolation = "container"/);
    assert.equal(existsSync(join(exec.ground.inside, "ran")), false);
  });

  test("a bwrap that does not work is not trusted", async () => {
    // A program that ignores its arguments and ends well.
    await using exec = await makeExec("auto", "/bin/true");
    assert.match((await exec.run({ command: "touch ran" })).content, /exec is refused/);
    assert.equal(existsSync(join(exec.ground.inside, "ran")), false);
  });

  test("nothing but the setting leads to running without a wall", () => {
    for (const setting of ["auto", "bubblewrap", "container", "none", "off"] as const) {
      const without = chooseIsolation(setting, { probe: { works: false, reason: "x" }, gvisor: false });
      const expected = setting === "auto" || setting === "bubblewrap" ? "refused" : setting;
      assert.equal(without.kind, expected);
      assert.notEqual(describeIsolation(without), "");
    }
  });

  test("with less than what is required a command is refused, and with that much it runs", () => {
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
      /^exec refused: at least bubblewrap is required, and here it would be container$/,
    );
  });

  test("commands in a container that reaches the internet are behind no wall; behind bubblewrap they are", () => {
    const works = { works: true as const, bwrap: "bwrap", disableUserNamespaces: true };
    const found = (setting: IsolationSetting, internet: boolean, gvisor = false) =>
      chooseIsolation(setting, { probe: works, gvisor, internet });
    for (const gvisor of [false, true]) {
      assert.equal(containmentOf(found("container", false, gvisor)), "container");
      assert.equal(containmentOf(found("container", true, gvisor)), "none");
      assert.match(describeIsolation(found("container", true, gvisor)), /reaches the internet/);
      assert.match(isolationTag(found("container", true, gvisor)), /with the internet/);
    }
    assert.equal(containmentOf(found("auto", true)), "sandbox");
    assert.doesNotMatch(describeIsolation(found("auto", true)), /internet/);
    assert.equal(containmentOf(found("none", false)), "none");
  });

  test("a call may need more than there is, and is refused alone", () => {
    const found = { kind: "container" } as const;
    assert.equal(lacking(found, undefined), undefined);
    assert.equal(lacking(found, "container"), undefined);
    assert.match(
      lacking(found, "gvisor")?.reason ?? "",
      /at least gvisor is required .*, and here they have container/,
    );
    assert.equal(lacking({ kind: "gvisor" }, "container"), undefined);
    assert.equal(lacking({ kind: "none" }, "bubblewrap")?.kind, "refused");
  });

  test("gVisor is known by the kernel it shows, and no other kernel is taken for it", () => {
    assert.equal(isGvisor("Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n"), true);
    assert.equal(isGvisor("Linux version 4.4.0-210-generic (buildd@lgw01) #242-Ubuntu SMP Fri Apr 16 2021\n"), false);
    assert.equal(isGvisor(""), false);
  });

  test("a command that needs more than there is does not run, and its result says who changes that", async () => {
    await using exec = await makeExec("none", bwrap ?? "bwrap", "bubblewrap");
    const { content, isError, isolation } = await exec.run({ command: "touch ran" });
    assert.equal(isError, true);
    assert.match(
      content,
      /exec is refused: at least bubblewrap is required, and here it would be none\.\n.*`min_isolation`/,
    );
    assert.equal(isolation, undefined);
    assert.equal(existsSync(join(exec.ground.inside, "ran")), false);
  });

  test("each result of a command carries how it was isolated, apart from its text", async () => {
    for (const setting of ["none", "container", ...(bwrap === undefined ? [] : ["bubblewrap" as const])] as const) {
      await using exec = await makeExec(setting);
      assert.equal((await exec.run({ command: "true" })).isolation, setting);
      assert.equal((await exec.run({ command: "sleep 5", background: true })).isolation, setting);
    }
  });

  test("a result that ran unprotected says so", async () => {
    await using exec = await makeExec("none");
    assert.match((await exec.run({ command: "true" })).content, /isolation: NONE \(the command ran unprotected/);
    await using inContainer = await makeExec("container");
    assert.match((await inContainer.run({ command: "true" })).content, /isolation: container only/);
  });
});

describe("the output window", () => {
  // design: 002.7
  test("property: it keeps both ends, counts what is missing, and never grows", () => {
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

async function untilExists(path: string): Promise<void> {
  const deadline = performance.now() + 10_000;
  while ((await readFile(path, "utf8").catch(() => "")) === "") {
    assert.ok(performance.now() < deadline, "the command has not begun");
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe("CPU time", () => {
  for (const setting of ["bubblewrap", "none"] as const) {
    const skip = setting === "bubblewrap" && bwrap === undefined ? "no bubblewrap here" : false;
    test(
      `a process that uses up its CPU time is stopped, and the result says so, isolation ${setting}`,
      { skip },
      async () => {
        await using exec = await makeExec(setting, bwrap ?? "bwrap", "none", { ...limits, maxCpuSeconds: 1 });
        const { content } = await exec.run({ command: "while :; do :; done" });
        assert.match(content, /it used more than its 1 s of CPU time/);
        assert.match(exec.limitedBy, /cpu: rlimit a process; .*time: clock$/);
      },
    );
  }
});

describe("CPUs of a command", () => {
  const busy = "for i in 1 2; do (while :; do :; done) & done; sleep 1; kill %1 %2; wait; times";
  for (const setting of ["bubblewrap", "none"] as const) {
    test(`its processes share what it may keep busy, isolation ${setting}`, async (t) => {
      if (setting === "bubblewrap" && bwrap === undefined) return t.skip("no bubblewrap here");
      await using exec = await makeExec(setting, bwrap ?? "bwrap", "none", { ...limits, maxCpus: 0.25 });
      if (!exec.limitedBy.includes("cpu: cgroup")) return t.skip("no control groups of CPU here");
      const { content } = await exec.run({ command: busy });
      // "0m0.250s 0m0.010s": user and system time of its children.
      const used = [...(content.match(/^.*s$/gm)?.at(-1) ?? "").matchAll(/(\d+)m([\d.]+)s/g)];
      const seconds = used.reduce((sum, [, minutes, rest]) => sum + Number(minutes) * 60 + Number(rest), 0);
      assert.ok(used.length > 0 && seconds < 0.6, `a quarter of a CPU for about a second, and it took ${seconds} s`);
    });
  }

  test("is said not to be held where there are no control groups", () => {
    const held = { counted: false, cpus: false, walled: true };
    assert.match(
      describeLimits({ ...limits, maxCpus: 2, maxCpuSeconds: 1 }, held),
      /cpu: max_cpus is not held here, rlimit a process;/,
    );
    assert.match(describeLimits({ ...limits, maxCpus: 2 }, { ...held, cpus: true }), /cpu: cgroup;/);
  });
});
