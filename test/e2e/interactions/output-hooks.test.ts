// Output that a hook removes stays out of the log and the published events, also when the turn is stopped before it reads its
// results, and when the leader dies meanwhile.
import assert from "node:assert/strict";
import { watch } from "node:fs";
import { after, before, test } from "node:test";
import { store } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { startClusterFixture, type ClusterFixture } from "../presets/support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;

/** The output differs from the command's own text. */
const secret = "printf 'top-%s' secret";
const withheld = "[withheld: the hook on its output did not run]";
const call = (command: string) => `tool: exec ${JSON.stringify({ command })}`;

before(async () => {
  fixture = await startClusterFixture(cleanup, null, {
    processes: ["agent-core"],
    replicas: { "agent-core": 2 },
    settings: `
[session]
policy = "per_conversation"
[tools]
execution = "parallel"
[permissions]
allow = ["exec"]
deny = ["write"]
[[hooks]]
event = "PostToolUse"
matcher = "exec"
command = '''if grep -q hangs; then touch hook-begun; sleep 60; else echo '{"hookSpecificOutput": {"updatedToolOutput": "[cleaned]"}}'; fi'''
timeout_seconds = 90
`,
  });
});
after(() => cleanup[Symbol.asyncDispose]());

const published = () => JSON.stringify(fixture.events);
const finished = (turnId: string) =>
  fixture.happens((event) => event.type === "tool.finished" && event.turnId === turnId);

async function stopped(messageId: string, turnId: string) {
  const { turn } = await fixture.bus.request(store.turnGet, { turnId });
  await fixture.stop(turn.sessionId);
  return fixture.ended(messageId);
}

test("keeps the rewritten result, and publishes no other, when the turn is stopped early", async () => {
  const messageId = await fixture.client.post([call(secret), call("sleep 300")].join("\n"), { conversation: "one" });
  const turnId = await fixture.begun(messageId);
  await finished(turnId);
  const turn = await stopped(messageId, turnId);
  assert.deepEqual(
    turn.results.map(({ content }) => content === "[cleaned]"),
    [true, false],
  );
  assert.doesNotMatch(published(), /top-secret/);
});

/** Starts a call whose hook does not end; resolves with its message and turn when the hook runs. */
async function hanging(conversation: string) {
  const begun = Promise.withResolvers<void>();
  const watcher = watch(fixture.cluster.home, (_, name) => {
    if (name === "hook-begun") begun.resolve();
  });
  cleanup.add(async () => watcher.close());
  const messageId = await fixture.client.post(call(`${secret} # hangs`), { conversation });
  const turnId = await fixture.begun(messageId);
  await begun.promise;
  return { messageId, turnId };
}

test("withholds a result when the turn is stopped while its hook runs", async () => {
  const { messageId, turnId } = await hanging("three");
  const turn = await stopped(messageId, turnId);
  assert.equal(turn.results[0]?.content, withheld);
  assert.doesNotMatch(JSON.stringify(turn) + published(), /top-secret/);
});

test("withholds a result when the leader dies before a hook has seen it", async () => {
  const { messageId, turnId } = await hanging("four");
  await fixture.cluster.fault("agent.before_finish", "kill");
  const turn = await stopped(messageId, turnId);
  assert.deepEqual(await fixture.cluster.armed(), []);
  assert.equal(turn.results[0]?.content, withheld);
  assert.doesNotMatch(JSON.stringify(turn), /top-secret/);
});

test("keeps the rewritten result when the leader dies after its hook", async () => {
  const messageId = await fixture.client.post([call(secret), call("sleep 300")].join("\n"), { conversation: "two" });
  const turnId = await fixture.begun(messageId);
  await finished(turnId);
  await fixture.cluster.fault("agent.before_finish", "kill");
  const turn = await stopped(messageId, turnId);
  assert.deepEqual(await fixture.cluster.armed(), []);
  assert.equal(turn.results[0]?.content, "[cleaned]");
  assert.doesNotMatch(JSON.stringify(turn), /top-secret/);
});

test("publishes a denial when no rule allows the call", async () => {
  const turn = await fixture.turn('tool: write {"path": "a", "content": "b"}', "five");
  const denied = await fixture.happens((event) => event.type === "tool.denied" && event.turnId === turn.turnId);
  assert.ok(denied.type === "tool.denied");
  assert.equal(denied.tool, "write");
  assert.equal(turn.results[0]?.content, denied.reason);
});
