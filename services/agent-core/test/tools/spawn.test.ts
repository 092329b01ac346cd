// `spawn` on a real store: one instance of the tool serves all turns, so what belongs to a call is in its context.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { store, type DurableEvent, type LiveEvent } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { spawnTool } from "../../src/tools/spawn.ts";
import { openToolContext, type ToolContextFixture } from "./tool-context.ts";

const cleanup = new Cleanup();
let room: ToolContextFixture;

before(async () => {
  room = await openToolContext(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

// design: 001.7, 001.11
test("uses publisher, session and depth of each call when one tool serves parent and child", async () => {
  const tool = spawnTool(room.settings);
  const atDepth = async (depth: number) => {
    const context = await room.call("sessions_spawn", "idempotent");
    const published: (DurableEvent | LiveEvent)[] = [];
    const policy = { ...context.policy, depth };
    return { ...context, policy, published, publish: (event: DurableEvent | LiveEvent) => published.push(event) };
  };
  const calls = [await atDepth(0), await atDepth(room.settings.subagents.max_depth), await atDepth(0)];
  const outcomes = await Promise.all(
    calls.map((context) => tool.run('{"prompt":"look","description":" ","mode":"wait"}', context)),
  );
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["waiting", "failed", "waiting"],
  );
  const [first, refused, last] = calls.map(({ published }) => published);
  assert.deepEqual(refused, []);
  for (const [context, events] of [
    [calls[0], first],
    [calls[2], last],
  ] as const) {
    assert.deepEqual(
      events?.map((event) => event.type === "subagent.started" && event.turnId),
      [context?.turn.turnId],
    );
    const [started] = events;
    assert.ok(started?.type === "subagent.started");
    assert.equal(started.description, "look");
    const { session } = await room.core.request(store.sessionGet, { sessionId: started.sessionId });
    assert.equal(session?.parentId, context?.turn.sessionId);
  }
});

// design: 003.31b
test("refuses a model, limits or rights that the caller chooses", async () => {
  const tool = spawnTool(room.settings);
  const chosen = { model: "opus", max_turns: 3, mode: "bypassPermissions", tools: ["exec"] };
  const valid = "prompt, task, profile, agent, subagent_type, description, label, mode, run_in_background, resume";
  for (const [field, value] of Object.entries(chosen)) {
    const context = await room.call("sessions_spawn", "idempotent");
    const outcome = await tool.run(JSON.stringify({ prompt: "look", [field]: value }), context);
    assert.ok(outcome.status === "failed", field);
    const words = new RegExp(`^Invalid arguments for sessions_spawn: .*${field}.* Valid arguments: ${valid}\\.$`);
    assert.match(outcome.content, words);
    const { sessionId: parentId } = context.turn;
    assert.deepEqual((await room.core.request(store.sessionList, { limit: 10, parentId })).sessions, []);
  }
});
