// Sampling requests, over a real bus and a real store, with the rehearsal model.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { createLogger } from "@parley/chassis";
import {
  agentSample,
  agentSampleCancel,
  ParleySettingsSchema,
  store,
  WireError,
  type ClaimedTurn,
  type Cost,
  type InputOf,
  type Usage,
} from "@parley/contracts";
import { Cleanup, startStoreStack } from "@parley/testing";
import { ModelRegistry } from "../../src/model/registry.ts";
import { SamplingService, type SamplingCall } from "../../src/sampling/service.ts";
import { Budgets } from "../../src/limits/budget.ts";
import type { Limits, Progress } from "../../src/limits/limits.ts";

const cleanup = new Cleanup();
let runner: Bus;
let gateway: Bus;
let core: Bus;
let epoch: number;
let service: SamplingService;
let served: { close(): void }[];
/** The instance that serves: `service`, until another replaces it. */
let serving: SamplingService;
/** A leader that has just started. */
let begun: () => SamplingService;
const budgets = new Budgets();

const settings = ParleySettingsSchema.parse({
  mcp: {
    servers: {
      on: { command: "x", sampling: { enabled: true, max_tokens: 7 } },
      off: { command: "x", sampling: { enabled: false } },
      plain: { command: "x" },
      elsewhere: { command: "x", sampling: { enabled: true, model: "openai:none" } },
    },
  },
  models: { known: { rehearsal: { price: { input: 1, output: 2 } } } },
});

before(async () => {
  const stack = await startStoreStack(cleanup);
  [runner, gateway, core] = await Promise.all([
    stack.bus("tool-runner"),
    stack.bus("channel-gateway"),
    stack.bus("agent-core"),
  ]);
  ({ epoch } = await core.request(store.leadershipAcquire, { opId: randomUUID(), holder: "test" }));
  const models = new ModelRegistry({
    access: { anthropic: null, openai: null, named: new Map() },
    main: "rehearsal",
    settings: settings.models,
    thinking: "off",
    warn: () => undefined,
  });
  const retry = { tries: 1, baseMs: 1, capMs: 1, firstByteMs: 60_000, idleMs: 60_000 };
  const log = createLogger({ service: "test", replica: "test", level: "silent" });
  const deps = { bus: core, log, epoch, storeTimeoutMs: 5_000, settings: settings.mcp, models, retry, budgets };
  service = new SamplingService({ ...deps, takeUpMs: 0 });
  begun = () => new SamplingService({ ...deps, takeUpMs: 600_000 });
  serving = service;
  served = serving.serve();
  cleanup.add(async () => served.forEach((each) => each.close()));
  await core.flush();
});
after(() => cleanup[Symbol.asyncDispose]());

const none: Limits = {
  maxIterations: 0,
  maxToolCalls: 0,
  maxTokens: 0,
  maxMicroUsd: 0,
  maxTreeMicroUsd: 0,
  maxMicroUsdPerDay: 0,
  maxIterationsPerSession: 0,
  maxMicroUsdPerSession: 0,
  maxTurnMs: 0,
  maxRoundsWithoutTools: 0,
  maxRepeatedCalls: 0,
};
const usage = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0 };

interface Running extends SamplingCall {
  used: SamplingCall["used"];
  spent: { usage: Usage; costMicros: number | null }[];
}

/** A turn with one open call of a tool of the server `on`. */
async function calling(limits: Limits = none, more: Partial<Progress> = {}): Promise<Running> {
  const { sessionId } = await gateway.request(store.inboxPut, {
    message: {
      channel: "http",
      account: "default",
      externalId: randomUUID(),
      conversation: "c",
      contact: { id: "7" },
      role: "owner",
      origin: "user",
      parts: [{ type: "text", text: "go" }],
      replyTo: { channel: "http", account: "default", conversation: "c" },
    },
    sessionKey: randomUUID(),
  });
  const claim = await core.request(store.turnClaim, {
    opId: randomUUID(),
    epoch,
    sessionId,
    knownSeq: 0,
    maxClaims: 5,
  });
  assert.ok(claim.status === "started");
  const { turn } = claim;
  const toolCalls = [{ callId: "call-2", tool: "mcp__on__ask", class: "once" as const, input: "{}" }];
  await commit(turn, 1, toolCalls);
  const spent: Running["spent"] = [];
  return {
    turn,
    n: 2,
    tool: "mcp__on__ask",
    limits: () => limits,
    progress: () => ({
      modelSteps: 1,
      toolCalls: 1,
      elapsedMs: 0,
      usage,
      cost: { micros: 100, unpricedCalls: 0 },
      treeMicroUsd: budgets.treeMicroUsd(turn),
      dayMicroUsd: 0,
      earlierModelSteps: 0,
      earlierMicroUsd: 0,
      roundsWithoutTools: 0,
      repeatedCalls: 0,
      ...more,
    }),
    used: (of, costMicros) => spent.push({ usage: of, costMicros }),
    notice: () => undefined,
    spent,
  };
}

function commit(
  turn: ClaimedTurn,
  n: number,
  toolCalls: { callId: string; tool: string; class: "once"; input: string }[] = [],
) {
  return core.request(store.stepCommit, {
    opId: randomUUID(),
    epoch,
    turnId: turn.turnId,
    n,
    model: "test",
    stopReason: "end_turn",
    usage,
    costMicros: 100,
    parts: [{ type: "text", text: "answer" }],
    results: n === 1 ? 0 : 1,
    toolCalls,
    outgoing: [],
    finish: n === 1 ? null : { state: "done", exitReason: "end_turn", text: "answer" },
  });
}

interface More {
  server?: string;
  id?: string;
  epoch?: number;
  /** `once`: one attempt only; otherwise retries until there is an answer. */
  once?: boolean;
}

function ask(call: SamplingCall, script: string, { once = false, ...more }: More = {}) {
  const sample: Sample = {
    epoch,
    id: randomUUID(),
    turnId: call.turn.turnId,
    n: call.n,
    server: "on",
    system: null,
    messages: [{ role: "user", parts: [{ type: "text", text: script }] }],
    maxTokens: 100,
    stopSequences: [],
    ...more,
  };
  return runner.request(agentSample, sample, { once });
}

type Sample = InputOf<typeof agentSample>;

const failsWith = (code: string) => (error: unknown) => WireError.is(error) && error.code === code;
const never = new AbortController().signal;

test("adds an answer's usage to the turn, the agent tree, the session and the day", async () => {
  const call = await calling();
  budgets.open(call.turn);
  const answer = await service.during(call, never, () => ask(call, "say: here\nusage: 1000 300"));
  assert.deepEqual(answer, { status: "answered", text: "here", model: "rehearsal", stopReason: "endTurn" });
  const used = { inputTokens: 1_000, outputTokens: 300, cacheReadTokens: 0, cacheWriteTokens: 0 };
  // At one dollar per million input tokens and two per million output tokens.
  assert.deepEqual(call.spent, [{ usage: used, costMicros: 1_600 }]);
  assert.equal(budgets.treeMicroUsd(call.turn), 1_600);
  const { turnId, sessionId } = call.turn;
  const opId = randomUUID();
  const result = { type: "tool_result" as const, id: "call-2", name: "x", content: "ok", isError: false };
  await core.request(store.stepSettle, { opId, epoch, turnId, n: 2, state: "done", result });
  const committed = await commit(call.turn, 3);
  assert.deepEqual([committed.usage.inputTokens, committed.cost] satisfies [number, Cost], [
    1_020,
    { micros: 1_800, unpricedCalls: 0 },
  ]);
  const today = new Date().toISOString().slice(0, 10);
  const { rows } = await core.request(store.usageReport, { sinceDay: today, sessionId });
  assert.deepEqual(
    rows.map(({ model, calls, cost }) => [model, calls, cost.micros]),
    [
      ["rehearsal", 1, 1_600],
      ["test", 2, 200],
    ],
  );
  const { session } = await core.request(store.sessionGet, { sessionId });
  assert.equal(session?.cost.micros, 1_800);
});

test("separates concurrent answers and counts a repeated commit once", async () => {
  const call = await calling();
  await service.during(call, never, () => Promise.all([1, 2, 3, 4].map((n) => ask(call, `say: ${n}\nusage: ${n} 0`))));
  const told = {
    opId: randomUUID(),
    epoch,
    turnId: call.turn.turnId,
    n: 2,
    model: "twice",
    stopReason: "end_turn",
    usage,
    costMicros: null,
  };
  await core.request(store.stepSampled, told);
  await core.request(store.stepSampled, told);
  const today = new Date().toISOString().slice(0, 10);
  const { rows } = await core.request(store.usageReport, { sinceDay: today, sessionId: call.turn.sessionId });
  assert.deepEqual(
    rows.map(({ model, calls, usage: { inputTokens }, cost }) => [model, calls, inputTokens, cost.unpricedCalls]),
    [
      ["rehearsal", 4, 10, 0],
      ["test", 1, 10, 0],
      ["twice", 1, 10, 1],
    ],
  );
});

test("answers only during a running call and only for an enabled server", async () => {
  const call = await calling();
  const gone = { status: "refused", reason: "the tool call is no longer running" };
  assert.deepEqual(await ask(call, "say: never"), gone);
  await service.during(call, never, async () => {
    for (const server of ["off", "plain", "nobody", "elsewhere"]) {
      const reason = `mcp.servers.${server}.sampling is not enabled`;
      assert.deepEqual(await ask(call, "say: never", { server }), { status: "refused", reason }, server);
    }
    const other = { ...call, tool: "mcp__elsewhere__ask", n: 9 };
    await service.during(other, never, async () => {
      const answer = await ask(other, "say: never", { server: "elsewhere" });
      assert.match(answer.status === "refused" ? answer.reason : "", /^openai:none requires OPENAI_API_KEY/);
    });
  });
  assert.deepEqual(await ask(call, "say: never"), gone);
  assert.deepEqual(call.spent, []);
});

test("refuses requests for another epoch", async () => {
  const call = await calling();
  await service.during(call, never, async () => {
    for (const other of [epoch - 1, epoch + 1]) {
      await assert.rejects(ask(call, "say: never", { epoch: other }), failsWith("STALE_EPOCH"));
    }
  });
});

test("names the exhausted limit of the turn or the day", async () => {
  const cases: [Partial<Limits>, Partial<Progress>, string][] = [
    [{ maxTokens: 15 }, {}, "limits.max_tokens"],
    [{ maxMicroUsd: 100 }, {}, "limits.max_usd"],
    [{ maxTreeMicroUsd: 5 }, { treeMicroUsd: 5 }, "limits.max_usd"],
    [{ maxMicroUsdPerSession: 9 }, { earlierMicroUsd: 4, treeMicroUsd: 5 }, "limits.max_usd_per_session"],
    [{ maxMicroUsdPerDay: 5 }, { dayMicroUsd: 5 }, "limits.max_usd_per_day"],
  ];
  for (const [limits, progress, setting] of cases) {
    const call = await calling({ ...none, ...limits }, progress);
    const answer = await service.during(call, never, () => ask(call, "say: never"));
    assert.deepEqual(answer, { status: "refused", reason: `${setting} is reached` });
  }
  const within = await calling({ ...none, maxTokens: 16, maxMicroUsd: 101 });
  assert.equal((await service.during(within, never, () => ask(within, "say: yes"))).status, "answered");
});

test("aborts the model call when the request, the turn or the tool call ends", async () => {
  const pausing = "pause: 600000";
  const call = await calling();
  const id = randomUUID();
  const asked = service.during(call, never, () => ask(call, pausing, { id }));
  const ticking = setInterval(() => runner.publish(agentSampleCancel, { id }), 20);
  await assert.rejects(asked, failsWith("CANCELLED"));
  clearInterval(ticking);

  const stop = new AbortController();
  const notices = Promise.withResolvers<undefined>();
  const watched = { ...call, notice: () => notices.resolve(undefined) };
  const stopped = service.during(watched, stop.signal, () => ask(watched, pausing));
  await notices.promise;
  stop.abort();
  await assert.rejects(stopped, failsWith("CANCELLED"));

  const begun = Promise.withResolvers<undefined>();
  const ending = { ...call, notice: () => begun.resolve(undefined) };
  const left: Promise<unknown>[] = [];
  await service.during(ending, never, async () => {
    const answer = ask(ending, pausing);
    answer.catch(() => undefined);
    left.push(answer);
    await begun.promise;
  });
  await assert.rejects(left[0] ?? Promise.resolve(), failsWith("CANCELLED"));
  assert.deepEqual(call.spent, []);
});

test("returns a refusal when the model fails", async () => {
  const call = await calling();
  const answer = await service.during(call, never, () => ask(call, "fail: overloaded"));
  assert.deepEqual(answer, { status: "refused", reason: "the model could not answer (overloaded)" });
});

test("returns UNAVAILABLE until a new leader has resumed the call", async () => {
  for (const each of served) each.close();
  serving = begun();
  served = serving.serve();
  await core.flush();
  const call = await calling();
  await assert.rejects(ask(call, "say: never", { once: true }), failsWith("UNAVAILABLE"));
  const waiting = ask(call, "say: taken up");
  await assert.rejects(ask(call, "say: never", { once: true }), failsWith("UNAVAILABLE"));
  const answer = await serving.during(call, never, () => waiting);
  assert.equal(answer.status === "answered" && answer.text, "taken up");
  assert.equal(call.spent.length, 1);
});

test("refuses without a retry when the leadership was lost during the model call", async () => {
  const call = await calling();
  const answer = await serving.during(call, never, async () => {
    await core.request(store.leadershipAcquire, { opId: randomUUID(), holder: "next" });
    return ask(call, "say: too late");
  });
  assert.deepEqual(answer, { status: "refused", reason: "the agent was restarted while the model was asked" });
});
