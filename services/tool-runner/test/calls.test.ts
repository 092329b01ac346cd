// How calls continue after a claim, and how results are settled while the store is unavailable.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { WireError, type ToolCallRequest, type ToolStep } from "@parley/contracts";
import { FairSemaphore } from "@parley/kit";
import { noCheckpoint } from "../src/snapshots/recorder.ts";
import { createRegistry } from "../src/tool/registry.ts";
import { callTimes } from "../src/calls/call-dependencies.ts";
import { Calls } from "../src/calls/calls.ts";
import { unlimitedQuota } from "../src/workspace/quota.ts";
import { Workspaces } from "../src/workspace/workspaces.ts";
import { decideClaim, stricterClass } from "../src/tool/claim-decision.ts";
import { EpochGate } from "../src/calls/epoch.ts";
import type { Settlement, StepClient } from "../src/calls/step-client.ts";
import { readTool } from "../src/tools/read.ts";
import { writeTool } from "../src/tools/write.ts";
import { makeWorkspaceFixture } from "./support/workspace-fixture.ts";

const me = { replica: "a", incarnation: "2" };
const request: ToolCallRequest = {
  epoch: 1,
  grant: "a.b",
  sessionId: "s",
  turnId: "t",
  n: 2,
  callId: "c",
  tool: "write",
  class: "once",
  input: '{"path":"f","content":"x"}',
  timeoutMs: 5_000,
  maxResultBytes: 10_000,
};

function step(overrides: Partial<ToolStep> = {}): ToolStep {
  const { turnId, n, callId, tool, class: toolClass, input } = request;
  return {
    turnId,
    n,
    callId,
    tool,
    class: toolClass,
    input,
    state: "running",
    result: null,
    runner: "a#2",
    startedAt: null,
    ...overrides,
  };
}

test("decides how to continue after each outcome of a claim", () => {
  const refused = (runner: string, state: ToolStep["state"] = "running") => ({
    granted: false,
    step: step({ runner, state }),
  });
  assert.deepEqual(decideClaim({ granted: true, step: step() }, me, "once"), { act: "run" });
  for (const state of ["done", "failed", "cancelled", "unknown"] as const) {
    assert.deepEqual(decideClaim(refused("b#1", state), me, "once"), { act: "answer" });
  }
  assert.deepEqual(decideClaim(refused("a#1"), me, "once"), { act: "interrupted" });
  assert.deepEqual(decideClaim(refused("a#1"), me, "idempotent"), { act: "run" });
  assert.deepEqual(decideClaim(refused("a#2"), me, "once"), { act: "run" });
  assert.deepEqual(decideClaim(refused("b#1"), me, "once"), { act: "wait", thenRun: false });
  assert.deepEqual(decideClaim(refused("b#1"), me, "idempotent"), { act: "wait", thenRun: true });
  // A replica whose name starts with ours is another one.
  assert.deepEqual(decideClaim(refused("a-2#1"), me, "once"), { act: "wait", thenRun: false });
});

test("picks the stricter of two effect classes", () => {
  assert.equal(stricterClass("pure", "once"), "once");
  assert.equal(stricterClass("idempotent", "pure"), "idempotent");
  assert.equal(stricterClass("pure", undefined), "pure");
});

test("retries the same settlement until the store accepts it, even after a takeover", async () => {
  await using ground = await makeWorkspaceFixture();
  const offers: Settlement[] = [];
  const answers = ["UNAVAILABLE", "TIMEOUT", "UNAVAILABLE", "TIMEOUT"] as const;
  const epochs = new EpochGate();
  const calls = makeCalls(ground, epochs, {
    claim: async () => ({ granted: true, step: step() }),
    settle: async (input) => {
      const code = answers[offers.length];
      offers.push(input);
      if (offers.length === 3) epochs.observe(7);
      if (code !== undefined) throw new WireError(code, "not now");
      return step({ state: input.state, result: input.result });
    },
  });
  const answer = await calls.handle(request);
  assert.equal(answer.state, "done");
  assert.equal(offers.length, 5);
  assert.equal(new Set(offers.map((offer) => JSON.stringify(offer))).size, 1);
});

test("settles a stored result when its call is requested again, without running it twice", async () => {
  await using ground = await makeWorkspaceFixture();
  let claims = 0;
  let reachable = false;
  const settled: Settlement[] = [];
  const calls = makeCalls(ground, new EpochGate(), {
    claim: async () => {
      claims += 1;
      return { granted: true, step: step() };
    },
    settle: async (input) => {
      if (!reachable) throw new WireError("INTERNAL", "broken");
      settled.push(input);
      return step({ state: input.state, result: input.result });
    },
  });
  await assert.rejects(calls.handle(request), /broken/);
  reachable = true;
  assert.equal((await calls.handle(request)).state, "done");
  assert.equal(claims, 1);
  assert.equal(settled.length, 1);
});

test("leaves small pure results to a caller that settles them, and settles all others itself", async () => {
  await using ground = await makeWorkspaceFixture();
  const settled: Settlement[] = [];
  const steps: StepClient = {
    claim: async () => ({ granted: true, step: step() }),
    settle: async (input) => {
      settled.push(input);
      return step({ state: input.state, result: input.result });
    },
  };
  const calls = makeCalls(ground, new EpochGate(), steps);
  await writeFile(join(ground.inside, "f"), "small");
  await writeFile(join(ground.inside, "g"), "large ".repeat(1_000));
  const read = (n: number, overrides: Partial<ToolCallRequest>) =>
    calls.handle({
      ...request,
      n,
      callId: `c${n}`,
      tool: "read",
      class: "pure",
      input: '{"path":"f"}',
      unsettledBytes: 1_000,
      ...overrides,
    });

  const left = await read(1, {});
  assert.deepEqual([left.state, left.unsettled, settled.length], ["done", true, 0]);
  assert.match(left.result.content, /small/);
  const failed = await read(2, { input: '{"path":"nowhere"}' });
  assert.deepEqual([failed.state, failed.unsettled, settled.length], ["failed", true, 0]);

  const here = [
    read(3, { unsettledBytes: undefined }),
    read(4, { input: '{"path":"g"}' }),
    read(5, { class: "once" }),
    calls.handle({ ...request, n: 6, callId: "c6", class: "pure", unsettledBytes: 1_000 }),
  ];
  for (const answer of await Promise.all(here)) assert.equal(answer.unsettled, undefined);
  calls.cancel({ epoch: 1, turnId: request.turnId, n: 7 });
  assert.equal((await read(7, {})).state, "cancelled");
  assert.deepEqual(settled.map(({ result }) => result.id).toSorted(), ["c3", "c4", "c5", "c6", "c7"]);
});

function makeCalls(
  ground: Awaited<ReturnType<typeof makeWorkspaceFixture>>,
  epochs: EpochGate,
  steps: StepClient,
): Calls {
  return new Calls({
    registry: createRegistry([writeTool, readTool]),
    workspaces: new Workspaces({ main: ground.workspace, folder: `${ground.outside}/people`, rules: unlimitedQuota }),
    documents: null,
    searcher: ground.searcher,
    checkpoint: () => noCheckpoint,
    steps,
    epochs,
    line: new FairSemaphore(4),
    me,
    times: callTimes,
    alive: () => undefined,
    faultPoint: () => undefined,
    onBug: (error) => {
      throw error;
    },
    onEnd: () => undefined,
  });
}
