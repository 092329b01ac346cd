// The tool-runner as a process that is killed (-9) or terminated: its commands end with it, and every call gets a truthful outcome.
// catalog/crash-walk.test.ts covers each tool at each point of a call.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { store } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { bwrap, running, sleeper } from "./support/commands.ts";
import { kill, killed, launch } from "./support/launch.ts";
import { openRunnerFixture, type RunnerFixture } from "./support/runner-fixture.ts";
import { pollUntil } from "@parley/testing/until";

const cleanup = new Cleanup();
let fixture: RunnerFixture;
let workspace: string;

before(async () => {
  fixture = await openRunnerFixture(cleanup);
  ({ workspace } = await fixture.config("x"));
  await mkdir(workspace, { recursive: true });
});
after(() => cleanup[Symbol.asyncDispose]());

/** Number of runs of a command that appends a line to this file. */
function effects(file: string): number {
  const path = join(workspace, file);
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").length - 1 : 0;
}

test("reruns an idempotent call with the same key when killed before settlement", async () => {
  const [request] = await fixture.plan([
    { tool: "write", class: "idempotent", input: { path: "memory/crashed.md", content: "once\n" } },
  ]);
  assert.ok(request !== undefined);
  const death = killed(await launch(fixture, "remembers", { FAULT: "tool.before_settle:kill" }));
  fixture.call(request, 1_000).catch(() => undefined);
  assert.equal(await death, "SIGKILL");
  const successor = await launch(fixture, "remembers");
  assert.equal((await fixture.call(request)).state, "done");
  await kill(successor);
  const { document } = await fixture.core.request(store.documentGet, { path: "memory/crashed.md" });
  assert.deepEqual([document?.version, document?.content], [1, "once\n"]);
});

for (const isolation of ["none", "bubblewrap"] as const) {
  const skip = isolation === "bubblewrap" && bwrap === undefined ? "no bubblewrap here" : false;
  test(`ends a command when its tool-runner is killed, isolation ${isolation}`, { skip }, async () => {
    const runner = await launch(fixture, "dies", { PARLEY_EXEC_ISOLATION: isolation, PARLEY_BWRAP: bwrap ?? "" });
    const sleep = sleeper();
    const [request] = await fixture.plan([
      { tool: "exec", class: "once", input: { command: `echo x >> dies-${isolation}; ${sleep} & ${sleep}` } },
    ]);
    assert.ok(request !== undefined);
    fixture.call(request, 3_000).catch(() => undefined);
    await pollUntil(() => effects(`dies-${isolation}`) === 1 && running(sleep).length === 2);
    await kill(runner);
    await pollUntil(() => running(sleep).length === 0);
  });
}

test("ends background processes when the tool-runner is killed, and its successor reports so", async () => {
  const runner = await launch(fixture, "behind");
  const sleep = sleeper();
  const [exec, poll] = await fixture.plan([
    { tool: "exec", class: "once", input: { command: `${sleep} & ${sleep}`, background: true } },
    { tool: "process", class: "once" },
  ]);
  assert.ok(exec !== undefined && poll !== undefined);
  const id = /in the background as (\S+@behind)/.exec((await fixture.call(exec)).result.content)?.[1];
  await pollUntil(() => running(sleep).length === 2);
  await kill(runner);
  await pollUntil(() => running(sleep).length === 0);
  const successor = await launch(fixture, "behind");
  const answer = await fixture.call({ ...poll, input: JSON.stringify({ action: "poll", id }) });
  assert.match(answer.result.content, /No process .* may have ended with its tool-runner/);
  await kill(successor);
});

test("waits for the leader's settlement of a once call when its runner has died", async () => {
  const dying = await launch(fixture, "dying", { FAULT: "tool.before_settle:kill" });
  const [request] = await fixture.plan([
    { tool: "exec", class: "once", input: { command: "echo effect >> effects-other" } },
  ]);
  assert.ok(request !== undefined);
  await assert.rejects(fixture.call(request, 1_500));
  await kill(dying);
  await launch(fixture, "living");
  const answer = fixture.call(request);
  const { step } = await fixture.core.request(store.stepSettle, {
    opId: crypto.randomUUID(),
    epoch: fixture.epoch,
    turnId: request.turnId,
    n: request.n,
    state: "unknown",
    result: { type: "tool_result", id: request.callId, name: "exec", content: "outcome unknown", isError: true },
  });
  assert.equal(step.state, "unknown");
  assert.equal((await answer).result.content, "outcome unknown");
  assert.equal(effects("effects-other"), 1);
});

// design: 000.36
test("finishes and settles a running call on SIGTERM, then exits with 0", async () => {
  const runner = await launch(fixture, "gentle");
  const [request] = await fixture.plan([
    {
      tool: "exec",
      class: "once",
      input: { command: "echo x >> gentle; until [ -e go ]; do sleep 0.02; done; echo end" },
    },
  ]);
  assert.ok(request !== undefined);
  const answer = fixture.call(request);
  await pollUntil(() => effects("gentle") === 1);
  const exited = new Promise((resolve) => runner.once("exit", resolve));
  runner.kill("SIGTERM");
  await writeFile(join(workspace, "go"), "");
  assert.match((await answer).result.content, /^end\n/);
  assert.equal(await exited, 0);
});

// design: 000.36b
test("exits immediately with 1 at a second signal, while a call still runs", async () => {
  const runner = await launch(fixture, "impatient");
  const [request] = await fixture.plan([
    { tool: "exec", class: "once", input: { command: "echo x >> impatient; sleep 600" } },
  ]);
  assert.ok(request !== undefined);
  fixture.call(request, 3_000).catch(() => undefined);
  await pollUntil(() => effects("impatient") === 1);
  const exited = new Promise((resolve) => runner.once("exit", resolve));
  // Two kinds, because two equal pending signals are one.
  runner.kill("SIGTERM");
  runner.kill("SIGINT");
  assert.equal(await exited, 1);
});

// design: 000.35
test("exits with 78 when bubblewrap is required but does not work", async () => {
  await assert.rejects(
    launch(fixture, "demands", { PARLEY_EXEC_ISOLATION: "bubblewrap", PARLEY_BWRAP: "/nonexistent/bwrap" }),
    /ended with 78/,
  );
});

test("exits with 78 when the isolation cannot enforce the list of hosts", async () => {
  const hosts = { PARLEY__TOOLS__EXEC__ALLOW_HOSTS: '["registry.npmjs.org"]' };
  await assert.rejects(launch(fixture, "open", { PARLEY_EXEC_ISOLATION: "none", ...hosts }), /ended with 78/);
});
