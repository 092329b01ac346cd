// The tool-runner as a process, killed (-9) at every point: what ran is never run again where that matters, and every call
// comes to an end that tells the truth.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { store, WireError, type ToolCallRequest } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { bwrap, running, sleeper } from "./support/commands.ts";
import { kill, killed, launch } from "./support/launch.ts";
import { openStage, type Stage } from "./support/stage.ts";
import { until } from "./support/until.ts";

const cleanup = new Cleanup();
let stage: Stage;
let workspace: string;

before(async () => {
  stage = await openStage(cleanup);
  ({ workspace } = await stage.config("x"));
  await mkdir(workspace, { recursive: true });
});
after(() => cleanup[Symbol.asyncDispose]());

/** How often a command that writes a line into this file was run. */
function effects(file: string): number {
  const path = join(workspace, file);
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").length - 1 : 0;
}

describe("killed at a fault point, started again under its name, asked again", () => {
  const expected = {
    "tool.before_claim": { once: "done", onceEffects: 1 },
    "tool.after_claim": { once: "unknown", onceEffects: 0 },
    "tool.running": { once: "unknown", onceEffects: 0 },
    "tool.before_settle": { once: "unknown", onceEffects: 1 },
    "tool.after_settle": { once: "done", onceEffects: 1 },
  } as const;
  for (const [point, { once, onceEffects }] of Object.entries(expected)) {
    test(`${point}: a call of class once has run at most once and is ${once}; an idempotent one is done`, async () => {
      const file = `effects-${point}`;
      const [exec, write] = await stage.plan([
        { tool: "exec", class: "once", input: { command: `echo effect >> ${file}` } },
        { tool: "write", class: "idempotent", input: { path: `written-${point}`, content: "once\n" } },
      ]);
      assert.ok(exec !== undefined && write !== undefined);
      const name = point.replace(".", "-");
      for (const request of [exec, write]) {
        const runner = await launch(stage, name, { FAULT: `${point}:kill` });
        const death = killed(runner);
        const unanswered = stage.call(request, 1_000);
        unanswered.catch(() => undefined);
        assert.equal(await death, "SIGKILL");
        await assert.rejects(unanswered, (error) => WireError.is(error, "TIMEOUT", "UNAVAILABLE"));
      }
      const successor = await launch(stage, name);
      for (const [request, state] of [
        [exec, once],
        [write, "done"],
      ] as const) {
        const answer = await stage.call(request);
        assert.equal(answer.state, state);
        assert.deepEqual((await stage.step(request)).result, answer.result);
        if (state === "unknown") assert.match(answer.result.content, /Whether it took effect is unknown/);
      }
      await kill(successor);
      assert.equal(effects(file), onceEffects);
      assert.equal(readFileSync(join(workspace, `written-${point}`), "utf8"), "once\n");
    });
  }
});

describe("killed after its work and before its result was kept", () => {
  /** Kills the runner of a call there, and asks its successor. */
  const again = async (name: string, request: ToolCallRequest) => {
    const death = killed(await launch(stage, name, { FAULT: "tool.before_settle:kill" }));
    stage.call(request, 1_000).catch(() => undefined);
    assert.equal(await death, "SIGKILL");
    const successor = await launch(stage, name);
    const answer = await stage.call(request);
    await kill(successor);
    return answer;
  };

  test("a call of class pure is made again and done", async () => {
    await writeFile(join(workspace, "to-read"), "still here\n");
    const [request] = await stage.plan([{ tool: "read", class: "pure", input: { path: "to-read" } }]);
    assert.ok(request !== undefined);
    const { state, result } = await again("reads", request);
    assert.equal(state, "done");
    assert.match(result.content, /still here/);
  });

  test("a patch, of class once, is not made again, and the model is told", async () => {
    await writeFile(join(workspace, "patched"), "one\n");
    const patch = "*** Begin Patch\n*** Update File: patched\n@@\n-one\n+one\n+one\n*** End Patch";
    const [request] = await stage.plan([{ tool: "apply_patch", class: "once", input: { patch } }]);
    assert.ok(request !== undefined);
    const { state, result } = await again("patches", request);
    assert.equal(state, "unknown");
    assert.match(result.content, /Whether it took effect is unknown/);
    assert.equal(readFileSync(join(workspace, "patched"), "utf8"), "one\none\n");
  });

  test("an idempotent call reruns with the same key: the store has one version of the document", async () => {
    const [request] = await stage.plan([
      { tool: "write", class: "idempotent", input: { path: "memory/crashed.md", content: "once\n" } },
    ]);
    assert.ok(request !== undefined);
    assert.equal((await again("remembers", request)).state, "done");
    const { document } = await stage.core.request(store.documentGet, { path: "memory/crashed.md" });
    assert.deepEqual([document?.version, document?.content], [1, "once\n"]);
  });
});

for (const isolation of ["none", "bubblewrap"] as const) {
  const skip = isolation === "bubblewrap" && bwrap === undefined ? "no bubblewrap here" : false;
  test(`a command dies with the tool-runner that ran it, isolation ${isolation}`, { skip }, async () => {
    const runner = await launch(stage, "dies", { PARLEY_EXEC_ISOLATION: isolation, PARLEY_BWRAP: bwrap ?? "" });
    const sleep = sleeper();
    const [request] = await stage.plan([
      { tool: "exec", class: "once", input: { command: `echo x >> dies-${isolation}; ${sleep} & ${sleep}` } },
    ]);
    assert.ok(request !== undefined);
    stage.call(request, 3_000).catch(() => undefined);
    await until(() => effects(`dies-${isolation}`) === 1 && running(sleep).length === 2);
    await kill(runner);
    await until(() => running(sleep).length === 0);
  });
}

test("what runs in the background dies with the tool-runner, and its successor says that it is gone", async () => {
  const runner = await launch(stage, "behind");
  const sleep = sleeper();
  const [exec, poll] = await stage.plan([
    { tool: "exec", class: "once", input: { command: `${sleep} & ${sleep}`, background: true } },
    { tool: "process", class: "once" },
  ]);
  assert.ok(exec !== undefined && poll !== undefined);
  const id = /in the background as (\S+@behind)/.exec((await stage.call(exec)).result.content)?.[1];
  await until(() => running(sleep).length === 2);
  await kill(runner);
  await until(() => running(sleep).length === 0);
  const successor = await launch(stage, "behind");
  const answer = await stage.call({ ...poll, input: JSON.stringify({ action: "poll", id }) });
  assert.match(answer.result.content, /There is no process .* may have ended with its tool-runner/);
  await kill(successor);
});

test("another replica waits for the dead one's call of class once until the leader has settled it, and starts nothing", async () => {
  const dying = await launch(stage, "dying", { FAULT: "tool.before_settle:kill" });
  const [request] = await stage.plan([
    { tool: "exec", class: "once", input: { command: "echo effect >> effects-other" } },
  ]);
  assert.ok(request !== undefined);
  await assert.rejects(stage.call(request, 1_500));
  await kill(dying);
  await launch(stage, "living");
  const answer = stage.call(request);
  const { step } = await stage.core.request(store.stepSettle, {
    opId: crypto.randomUUID(),
    epoch: stage.epoch,
    turnId: request.turnId,
    n: request.n,
    state: "unknown",
    result: { type: "tool_result", id: request.callId, name: "exec", content: "outcome unknown", isError: true },
  });
  assert.equal(step.state, "unknown");
  assert.equal((await answer).result.content, "outcome unknown");
  assert.equal(effects("effects-other"), 1);
});

test("SIGTERM lets a running call end and be settled, then the process ends with 0", async () => {
  const runner = await launch(stage, "gentle");
  const [request] = await stage.plan([
    {
      tool: "exec",
      class: "once",
      input: { command: "echo x >> gentle; until [ -e go ]; do sleep 0.02; done; echo end" },
    },
  ]);
  assert.ok(request !== undefined);
  const answer = stage.call(request);
  await until(() => effects("gentle") === 1);
  const exited = new Promise((resolve) => runner.once("exit", resolve));
  runner.kill("SIGTERM");
  await writeFile(join(workspace, "go"), "");
  assert.match((await answer).result.content, /^end\n/);
  assert.equal(await exited, 0);
});

test("bubblewrap demanded where it does not work: the process ends with 78 and says why", async () => {
  await assert.rejects(
    launch(stage, "demands", { PARLEY_EXEC_ISOLATION: "bubblewrap", PARLEY_BWRAP: "/nonexistent/bwrap" }),
    /ended with 78/,
  );
});
