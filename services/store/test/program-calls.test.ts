// Calls of tools that a program runs itself: offered once, held by one process, settled once. On a real PostgreSQL and a real bus.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { store, WireError } from "@parley/contracts";
import { Cleanup, pollUntil } from "@parley/testing";
import { openStoreFixture, saying, stepOf, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
let gateway: Bus;
let core: Bus;

before(async () => {
  fixture = await openStoreFixture(cleanup);
  ({ gateway, core } = fixture);
});
after(() => cleanup[Symbol.asyncDispose]());

const fenced = () => fixture.fenced();
const callId = "call-2";

/** A turn with one call, step 2. */
async function called() {
  const { sessionId } = await fixture.put(randomUUID(), saying("go"));
  const { turnId } = await fixture.started(sessionId);
  const toolCalls = [{ callId, tool: "mcp__shop__add", class: "once" as const, input: "{}" }];
  await core.request(
    store.stepCommit,
    stepOf(fenced(), turnId, 1, { stopReason: "tool_use", parts: [], toolCalls, finish: null }),
  );
  return { sessionId, turnId };
}

const offer = (turnId: string, holdMs = 60_000) =>
  core.request(store.programCallOpen, { ...fenced(), turnId, n: 2, input: '{"a":1}', holdMs });
const take = (turnId: string, by: string, holdMs = 60_000) =>
  gateway.request(store.programCallTake, { turnId, callId, by, holdMs });
const answer = (turnId: string, by: string, content: string) =>
  gateway.request(store.programCallAnswer, { turnId, callId, by, content, isError: false });

test("gives a call to the first process that takes it, and settles it with its result", async () => {
  const { turnId } = await called();
  const [first, second] = [randomUUID(), randomUUID()];
  assert.deepEqual(await take(turnId, first), { input: null });
  const offered = await offer(turnId);
  assert.deepEqual([offered.step.state, offered.taken, offered.isOver], ["running", false, false]);
  assert.deepEqual(await take(turnId, first), { input: '{"a":1}' });
  assert.deepEqual(await take(turnId, first), { input: '{"a":1}' });
  assert.deepEqual(await take(turnId, second), { input: null });
  assert.deepEqual(await answer(turnId, second, "no"), { outcome: "over" });
  assert.deepEqual(await answer(turnId, first, "3"), { outcome: "settled" });
  assert.deepEqual(await answer(turnId, first, "4"), { outcome: "over" });
  const { step } = await offer(turnId);
  assert.deepEqual([step.state, step.result?.content], ["done", "3"]);
});

test("wakes a parked turn with the result", async () => {
  const { turnId } = await called();
  const by = randomUUID();
  const { heldUntil } = await offer(turnId);
  const park = { turnId, waitingFor: [2], wakeAt: heldUntil };
  assert.deepEqual(await core.request(store.turnPark, { ...fenced(), ...park }), { parked: true });
  await take(turnId, by);
  await answer(turnId, by, "3");
  assert.deepEqual(await core.request(store.turnPark, { ...fenced(), ...park }), { parked: false });
});

test("reports a call over that nobody takes in time, or whose holder is lost", async () => {
  const { turnId } = await called();
  const by = randomUUID();
  await offer(turnId, 1);
  const untaken = await pollUntil(async () => {
    const state = await offer(turnId);
    return state.isOver && state;
  });
  assert.equal(untaken.taken, false);
  assert.deepEqual(await take(turnId, by), { input: null });
  const { turnId: other } = await called();
  await offer(other);
  assert.notEqual((await take(other, by, 1_000)).input, null);
  const lost = await pollUntil(async () => {
    const state = await offer(other);
    return state.isOver && state;
  });
  assert.equal(lost.taken, true);
  assert.deepEqual(await take(other, randomUUID()), { input: null });
});

test("refuses to offer a settled call, and keeps the tools out of summaries", async () => {
  const { sessionId, turnId } = await called();
  const result = { type: "tool_result" as const, id: callId, name: "mcp__shop__add", content: "x", isError: true };
  await core.request(store.stepSettle, { ...fenced(), turnId, n: 2, state: "failed", result });
  await assert.rejects(offer(turnId), (error) => WireError.is(error, "CONFLICT"));
  const programTools = [{ name: "mcp__shop__add", description: "Adds", inputSchema: { type: "object" } }];
  const changed = await gateway.request(store.sessionUpdate, { sessionId, overrides: { programTools, effort: "low" } });
  assert.deepEqual(changed.session?.overrides, { effort: "low" });
});
