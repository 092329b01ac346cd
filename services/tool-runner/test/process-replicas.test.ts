// Background processes with several tool-runners: a call is routed to the runner of the process.
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { after, before, test } from "node:test";
import { totalmem } from "node:os";
import { store, toolProcesses } from "@parley/contracts";
import { Cleanup, pollUntil } from "@parley/testing";
import { createProcessApi } from "../src/processes/api.ts";
import { Processes } from "../src/processes/processes.ts";
import { defaultExecLimits } from "../src/sandbox/limits.ts";
import { openRunnerFixture, type RunnerFixture } from "./support/runner-fixture.ts";

const cleanup = new Cleanup();
let fixture: RunnerFixture;

before(async () => {
  fixture = await openRunnerFixture(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

const idIn = (content: string) => /in the background as (\S+)/.exec(content)?.[1] ?? assert.fail(content);

test("routes a call to the runner of the process from any replica", async () => {
  await using local = new Cleanup();
  for (const name of ["left.1", "right"]) {
    const runner = await fixture.runner(name);
    local.add(() => runner.close());
  }
  const [exec, end, ...calls] = await fixture.plan([
    { tool: "exec", class: "once", input: { command: "while read line; do echo got $line; done", background: true } },
    ...Array.from({ length: 61 }, () => ({ tool: "process", class: "once" as const })),
  ]);
  assert.ok(exec !== undefined && end !== undefined);
  const [lists, polls] = [calls.slice(0, 30), calls.slice(30)];
  const id = idIn((await fixture.call(exec)).result.content);
  // A list waits only a moment for other replicas.
  let listed = "";
  for (const request of lists) {
    const { result } = await fixture.call({ ...request, input: JSON.stringify({ action: "list" }) });
    listed = result.content;
    if (listed.startsWith(id)) break;
  }
  assert.match(listed, new RegExp(`^${id}  running  since \\S+  0 characters  while read line`));

  const askedAt = new Set<string | null>();
  for (const [index, request] of polls.entries()) {
    const asks =
      index % 2 === 0 ? { action: "input", id, input: `${index}\n` } : { action: "poll", id, wait_seconds: 10 };
    const { state, result } = await fixture.call({ ...request, input: JSON.stringify(asks) });
    assert.equal(state, "done", result.content);
    if (index % 2 === 1) assert.match(result.content, new RegExp(`^got ${index - 1}\n`));
    askedAt.add((await fixture.step(request)).runner);
  }
  assert.equal(askedAt.size, 2, "both runners received calls");
  const ended = await fixture.call({ ...end, input: JSON.stringify({ action: "input", id, end: true }) });
  assert.equal(ended.state, "done");

  const [other] = await fixture.plan([{ tool: "process", class: "once", input: { action: "log", id } }]);
  assert.ok(other !== undefined);
  const theirs = await fixture.call(other);
  assert.equal(theirs.state, "failed");
  assert.match(theirs.result.content, /No process/, "another session's process is not visible");
});

test("keeps output for the next poll when a poll from another replica is cancelled", async () => {
  await using local = new Cleanup();
  const runner = await fixture.runner("owns");
  local.add(() => runner.close());
  const [exec, poll] = await fixture.plan([
    { tool: "exec", class: "once", input: { command: "while read line; do echo got $line; done", background: true } },
    { tool: "process", class: "once" },
  ]);
  assert.ok(exec !== undefined && poll?.grant !== undefined);
  const id = idIn((await fixture.call(exec)).result.content);
  const processes = new Processes("asks", { maxPerSession: 1, maxInAll: 1 });
  const api = createProcessApi(
    await fixture.stack.bus("tool-runner"),
    "asks",
    { processes, limits: defaultExecLimits(totalmem()), isolation: "none" },
    { markReported: () => assert.fail("nothing has ended") },
    () => [],
  );
  const { sessionId, grant } = poll;
  const ask = async (
    action: "poll" | "log" | "input",
    { waitMs = 0, input = "", signal = new AbortController().signal } = {},
  ) => {
    const question = { sessionId, id, action, waitMs, offset: null, limit: 1_000, input, end: false } as const;
    const { content, isError } = await api.control({ ...question, signal: "SIGTERM" }, { signal, grant });
    assert.equal(isError, false, content);
    return content;
  };
  const control = new AbortController();
  const cancelled = assert.rejects(ask("poll", { waitMs: 60_000, signal: control.signal }));
  // The owner handles requests in order: it waits for output when it answers this one.
  assert.match(await ask("log"), /no output/);
  control.abort(new Error("cancelled"));
  await cancelled;
  await ask("input", { input: "one\n" });
  await pollUntil(async () => (await ask("log")).startsWith("got one\n"), "the output");
  assert.match(await ask("poll"), /^got one\n/);
  const waiting = ask("poll", { waitMs: 60_000 });
  await ask("input", { input: "two\n" });
  assert.match(await waiting, /^got two\n/);
});

test("reports a process as ended when its runner is gone", async () => {
  await using local = new Cleanup();
  const runner = await fixture.runner("stays");
  local.add(() => runner.close());
  const gone = await fixture.runner("goes");
  await gone.close();
  const [poll] = await fixture.plan([
    { tool: "process", class: "once", input: { action: "poll", id: "0123456789@goes" } },
  ]);
  assert.ok(poll !== undefined);
  const { state, result } = await fixture.call(poll);
  assert.equal(state, "failed");
  assert.match(result.content, /tool-runner "goes" that runs this process did not respond/);
});

test("waits for the list of a slow replica, and names one that does not respond", async () => {
  await using local = new Cleanup();
  const runner = await fixture.runner("fast", { watchTimes: { renewMs: 50, looks: 1_000 } });
  local.add(() => runner.close());
  const peer = await fixture.stack.bus("tool-runner");
  const calls = await fixture.plan(
    Array.from({ length: 40 }, () => ({ tool: "process", class: "once" as const, input: { action: "list" } })),
  );
  const [call] = calls;
  assert.ok(call?.grant !== undefined);
  const { grant } = call;
  const startedAt = new Date().toISOString();
  // The peers are alive for the store: they have background processes.
  for (const replica of ["slow", "silent"]) {
    const begun = { grant, id: `0123456789@${replica}`, runner: `${replica}#1`, keyHash: "a".repeat(64) };
    await peer.request(store.processBegin, { ...begun, command: "sleep", startedAt, notify: false });
  }
  const line = { id: "0123456789@slow", command: "sleep 60", startedAt, ended: null, characters: 0 };
  // Longer than the first wait.
  const slow = peer.serve(toolProcesses, () => delay(500, { replica: "slow", processes: [line] }));
  local.add(async () => slow.close());
  let listed = "";
  const next = calls.values();
  // The runner learns of the peers with its next report to the store.
  await pollUntil(async () => {
    const request = next.next().value;
    assert.ok(request !== undefined, listed);
    listed = (await fixture.call(request)).result.content;
    return listed.includes("silent");
  }, "a list that names the silent replica");
  const [found = "", missing = ""] = listed.split("\n");
  assert.match(found, /^0123456789@slow {2}running/);
  assert.match(missing, /^The tool-runner "silent" did not respond: processes that run there are not listed\./);
});
