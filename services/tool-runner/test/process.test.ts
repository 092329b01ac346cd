// Background processes: polling, input, signals, limits, and visibility limited to their own session.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as immediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ParleySettingsSchema } from "@parley/contracts";
import { pollUntil } from "@parley/testing/until";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { openExecutor } from "../src/sandbox/executor.ts";
import { isolationTag, type IsolationSetting } from "../src/sandbox/isolation.ts";
import { defaultExecLimits } from "../src/sandbox/limits.ts";
import { queryLocal, linesHere } from "../src/processes/local-process.ts";
import { Processes } from "../src/processes/processes.ts";
import { TextRingBuffer } from "../src/processes/ring-buffer.ts";
import { success, type ToolOutput } from "../src/tool/tool.ts";
import { execTool, type ExecTimes } from "../src/tools/exec.ts";
import { processTool } from "../src/tools/process.ts";
import { bwrap, running, sleeper } from "./support/commands.ts";
import { makeWorkspaceFixture, type WorkspaceFixture } from "./support/workspace-fixture.ts";

const limits = { ...defaultExecLimits(totalmem()), maxOutputBytes: 1024 * 1024 };

/** Waits for the process: a shell reports a start before the process exists. */
async function untilRunning(command: string): Promise<void> {
  await pollUntil(() => running(command).length > 0, `${command} to run`);
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Memory in use in MiB, without garbage: the resident size depends on when the collector last ran. */
function liveMib(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1024 / 1024;
}

interface Shell extends AsyncDisposable {
  ground: WorkspaceFixture;
  processes: Processes;
  exec(args: Record<string, unknown>, session?: string): Promise<ToolOutput>;
  process(args: Record<string, unknown>, session?: string, signal?: AbortSignal): Promise<ToolOutput>;
}

async function openShell(setting: IsolationSetting = "none", changed: Partial<ExecTimes> = {}): Promise<Shell> {
  const ground = await makeWorkspaceFixture();
  const executor = await openExecutor({
    workspace: ground.workspace,
    setting,
    bwrap: bwrap ?? "bwrap",
    searchPath: "/usr/bin",
    limits,
  });
  const processes = new Processes("here", { maxPerSession: 3, maxInAll: 4 });
  const times = { timeoutSeconds: 250, backgroundAfterSeconds: 0, backgroundTimeoutSeconds: 250, ...changed };
  const exec = execTool({ executor, limits, processes, times });
  const local = { processes, limits, isolation: isolationTag(executor.isolation) };
  const process = processTool({
    list: async (viewer) => success(JSON.stringify(linesHere(viewer, processes))),
    control: (question, { signal }) => queryLocal(question, local, signal),
  });
  return {
    ground,
    processes,
    exec: (args, session = "mine") => ground.call(exec, args, undefined, session),
    process: (args, session = "mine", signal) => ground.call(process, args, signal, session),
    [Symbol.asyncDispose]: async () => {
      await processes.close();
      await ground[Symbol.asyncDispose]();
    },
  };
}

function idIn({ content }: ToolOutput): string {
  const id = /in the background as (\S+@here)/.exec(content)?.[1];
  assert.ok(id !== undefined, content);
  return id;
}

/** Polls until a result matches; returns all results together. */
async function pollProcess(shell: Shell, id: string, pattern: RegExp): Promise<string> {
  let all = "";
  for (let polls = 0; !pattern.test(all); polls++) {
    assert.ok(polls < 100, `never ${String(pattern)}: ${all}`);
    const { content, isError } = await shell.process({ action: "poll", id, wait_seconds: 20 });
    assert.equal(isError, false, content);
    all += content;
  }
  return all;
}

for (const setting of ["bubblewrap", "none"] as const) {
  const skip = setting === "bubblewrap" && bwrap === undefined ? "no bubblewrap here" : false;

  test(`moves a slow command to the background, isolation ${setting}`, { skip }, async () => {
    await using shell = await openShell(setting);
    const begun = await shell.exec({
      command: "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo over; exit 3",
      wait_seconds: 1,
    });
    assert.equal(begun.isError, false);
    assert.match(begun.content, /^begun\n\[Runs in the background as \S+@here · isolation: /);
    const id = idIn(begun);
    const quiet = await shell.process({ action: "poll", id });
    assert.match(quiet.content, /^\(no new output\)\n\[\S+ is running · \d s of at most 250 s\]$/);
    await writeFile(join(shell.ground.inside, "go"), "");
    const rest = await pollProcess(shell, id, /has ended/);
    assert.match(rest, /over\n/);
    assert.doesNotMatch(rest, /begun/, "output is shown only once");
    assert.match(rest, /\[exit code 3 · /);
    assert.match((await shell.process({ action: "log", id })).content, /^begun\nover\n\[Characters 0 to 11 of 11/);
  });

  test(`signals the command, and kills its whole tree with SIGKILL, isolation ${setting}`, { skip }, async () => {
    await using shell = await openShell(setting);
    const polite = idIn(
      await shell.exec({
        command: "trap 'echo asked; exit 5' INT; echo ready; while :; do sleep 0.05; done",
        background: true,
      }),
    );
    await pollProcess(shell, polite, /ready/);
    assert.equal((await shell.process({ action: "signal", id: polite, signal: "SIGINT" })).isError, false);
    assert.match(await pollProcess(shell, polite, /has ended/), /asked\n[^]*exit code 5/);

    const sleep = sleeper();
    const deaf = idIn(
      await shell.exec({
        command: `trap '' TERM INT; (setsid ${sleep} &); ${sleep} & echo ready; wait; ${sleep}`,
        background: true,
      }),
    );
    await pollProcess(shell, deaf, /ready/);
    await untilRunning(sleep);
    await shell.process({ action: "signal", id: deaf, signal: "SIGKILL" });
    assert.match(await pollProcess(shell, deaf, /has ended/), /killed by SIGKILL|exit code 137/);
    assert.deepEqual(running(sleep), []);
    const late = await shell.process({ action: "signal", id: deaf });
    assert.equal(late.isError, true);
    assert.match(late.content, /has ended/);
  });
}

// design: 000.16
test("sends input to a command started in the background, until it is closed", async () => {
  await using shell = await openShell();
  const id = idIn(
    await shell.exec({ command: "while read line; do echo got $line; done; echo closed", background: true }),
  );
  assert.match((await shell.process({ action: "input", id, input: "one\n" })).content, /Written: 4 characters/);
  await pollProcess(shell, id, /got one/);
  await shell.process({ action: "input", id, input: "two\n", end: true });
  assert.match(await pollProcess(shell, id, /has ended/), /got two\n[^]*closed/);
  assert.match((await shell.process({ action: "input", id, input: "x" })).content, /has ended/);
});

test("gives a foreground command empty input, and rejects later input", async () => {
  await using shell = await openShell();
  assert.match((await shell.exec({ command: "cat; echo end of input" })).content, /^end of input/);
  const id = idIn(await shell.exec({ command: "sleep 60", wait_seconds: 1 }));
  const fed = await shell.process({ action: "input", id, input: "x" });
  assert.equal(fed.isError, true);
  assert.match(fed.content, /accepts no input: only commands that exec started with background/);
});

// design: 003.18
test("accepts aliases of the process id and short signal names", async () => {
  await using shell = await openShell();
  for (const [name, signal, code] of [
    ["process_id", "TERM", 6],
    ["pid", "INT", 7],
  ] as const) {
    const id = idIn(
      await shell.exec({
        command: `trap 'exit 6' TERM; trap 'exit 7' INT; echo ready; while :; do sleep 0.05; done`,
        background: true,
      }),
    );
    await pollProcess(shell, id, /ready/);
    assert.equal((await shell.process({ action: "signal", [name]: id, signal })).isError, false);
    assert.match(await pollProcess(shell, id, /has ended/), new RegExp(`exit code ${code}`));
  }
  const id = idIn(await shell.exec({ command: "trap '' TERM; sleep 60", background: true }));
  await shell.process({ action: "signal", pid: id, signal: "KILL" });
  assert.match(await pollProcess(shell, id, /has ended/), /SIGKILL|137/);
});

test("hides a process from other sessions", async () => {
  await using shell = await openShell();
  const id = idIn(await shell.exec({ command: "sleep 60", background: true }));
  for (const action of ["poll", "log", "input", "signal"]) {
    const { content, isError } = await shell.process({ action, id, input: "x" }, "theirs");
    assert.equal(isError, true);
    assert.match(content, /No process/);
  }
  assert.equal((await shell.process({ action: "list" }, "theirs")).content, "[]");
  assert.match((await shell.process({ action: "list" })).content, new RegExp(id));
});

test("limits background processes per session: further ones are not started, or are waited for", async () => {
  await using shell = await openShell();
  for (let i = 0; i < 3; i++) await shell.exec({ command: "sleep 60", background: true });
  const fourth = await shell.exec({ command: "touch started", background: true });
  assert.equal(fourth.isError, true);
  assert.match(fourth.content, /already has 3 background processes.*was not started/);
  const waited = await shell.exec({ command: "sleep 1.5; echo done", wait_seconds: 1 });
  assert.match(waited.content, /^done\n/);
  assert.equal((await shell.exec({ command: "sleep 60", background: true }, "other")).isError, false);
  assert.match((await shell.exec({ command: "sleep 60", background: true }, "third")).content, /already has 4/);
});

// design: 000.16b
test("moves nothing to the background when that is disabled, also not after the default time", async () => {
  const { background_after_seconds: usual } = ParleySettingsSchema.parse({}).tools.exec;
  await using shell = await openShell("none", { backgroundAfterSeconds: 0 });
  assert.match((await shell.exec({ command: `sleep ${usual + 0.5}; echo done` })).content, /^done\n/);
});

test("stops a background process at its timeout", async () => {
  await using shell = await openShell();
  const id = idIn(await shell.exec({ command: "echo on; sleep 60", background: true, timeout_seconds: 1 }));
  assert.match(await pollProcess(shell, id, /has ended/), /did not end within 1 seconds/);
});

test("bounds the stored output of a background process, and polls report dropped output", async () => {
  await using shell = await openShell();
  const before = liveMib();
  let peakMib = before;
  let polls = 0;
  const id = idIn(
    await shell.exec({ command: "yes 0123456789abcde | head -c 50M; echo; echo last", background: true }),
  );
  let seen = "";
  for (; !seen.includes("has ended"); await immediate()) {
    seen = (await shell.process({ action: "poll", id, limit: 10 })).content;
    if (polls++ % 100 === 0) peakMib = Math.max(peakMib, liveMib());
  }
  peakMib = Math.max(peakMib, liveMib());
  const log = await shell.process({ action: "log", id });
  const total = 50 * 1024 * 1024 + 6;
  assert.match(log.content, new RegExp(`of ${total}; stored from ${total - 100_000}. Read on with: process\\(`));
  const next = /Read on with: process\((\{.*\})\)/.exec(log.content)?.[1] ?? "";
  assert.match((await shell.process(JSON.parse(next) as Record<string, unknown>)).content, /0123456789abcde/);
  assert.match((await shell.process({ action: "log", id, offset: total - 5 })).content, /^last\n\[Characters/);
  assert.ok(peakMib - before < 16, `memory in use grew by ${(peakMib - before).toFixed(1)} MiB`);
});

test("ends a waiting poll when its call is cancelled, and keeps the process running", async () => {
  await using shell = await openShell();
  const id = idIn(await shell.exec({ command: "sleep 60", background: true }));
  const control = new AbortController();
  const polling = shell.process({ action: "poll", id, wait_seconds: 100 }, "mine", control.signal);
  control.abort(new Error("cancelled"));
  assert.match((await polling).content, /is running/);
  assert.equal(shell.processes.running, 1);
});

test("ends all background processes on close", async () => {
  const sleep = sleeper();
  await using shell = await openShell();
  const id = idIn(await shell.exec({ command: `${sleep} & echo ready; wait`, background: true }));
  await pollProcess(shell, id, /ready/);
  await untilRunning(sleep);
  await shell.processes.close();
  assert.deepEqual(running(sleep), []);
});

test("names missing and unknown arguments, with the valid ones", async () => {
  await using shell = await openShell();
  const without = await shell.process({ action: "poll" });
  assert.equal(without.isError, true);
  assert.match(without.content, /id: required for the action poll/);
  assert.match((await shell.process({ action: "input", id: "x@here" })).content, /input: required/);
  assert.match(
    (await shell.process({ action: "stop" })).content,
    /action: [^]*Accepted arguments: action \(required\), id, /,
  );
  assert.match((await shell.process({ action: "signal", id: "x@here", signal: "SIGSTOP" })).content, /signal: /);
  assert.match((await shell.process({ action: "poll", id: "nothing" })).content, /No process "nothing"/);
});

test("property: reads back what was pushed, in any chunking", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: fc.constantFrom("a", "é", "漢", "b") }), { maxLength: 40 }),
      fc.integer({ min: 1, max: 30 }),
      fc.nat(60),
      fc.integer({ min: 1, max: 20 }),
      (texts, capacity, from, limit) => {
        const ring = new TextRingBuffer(capacity);
        const whole = texts.join("");
        const bytes = Buffer.from(whole);
        for (let at = 0; at < bytes.length; at += 2) ring.push(bytes.subarray(at, at + 2));
        assert.equal(ring.end, whole.length);
        assert.equal(ring.start, Math.max(0, whole.length - capacity));
        const piece = ring.read(from, limit);
        assert.equal(piece.text, whole.slice(piece.from, piece.to));
        assert.equal(piece.from, Math.min(Math.max(from, ring.start), ring.end));
        assert.ok(piece.to - piece.from <= limit);
      },
    ),
    { numRuns: propertyRuns(1_000) },
  );
});
