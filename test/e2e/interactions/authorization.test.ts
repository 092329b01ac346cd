// A call is authorized once: its hooks run once and its rules are evaluated once, also when a person approves it later, and
// when another leader resumes it. Only changed rules are evaluated again.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { store, textOf } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { startClusterFixture, type ClusterFixture } from "../presets/support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;

const record = `input=$(cat); printf '%s\\n' "$input" >> hooks.log`;
const note = "seen by the hook";

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
deny = ["exec(echo closed*)"]
[[hooks]]
event = "PreToolUse"
command = '''${record}; case "$input" in
*rewrite-me*) echo '{"hookSpecificOutput": {"updatedInput": {"command": "echo rewritten"}}}';;
*ask-me*) echo '{"hookSpecificOutput": {"updatedInput": {"question": "Which colour?"}}}';;
*close-it*) echo '{"decision": "allow", "hookSpecificOutput": {"updatedInput": {"command": "echo closed"}}}';;
*hook-asks*) echo '{"decision": "ask", "reason": "the hook wants a person"}';;
*) echo '{"hookSpecificOutput": {"additionalContext": "${note}"}}';;
esac'''
[[hooks]]
event = "PermissionRequest"
command = '''${record}'''
[[hooks]]
event = "PostToolUse"
command = '''${record}; case "$input" in
*tool_response*keep-out*) echo '{"hookSpecificOutput": {"updatedToolOutput": "[cleaned]"}}';;
esac'''
[[hooks]]
event = "PostToolUseFailure"
command = '''${record}'''
`,
  });
});
after(() => cleanup[Symbol.asyncDispose]());

/** Runs of each hook event in a turn, such as `PreToolUse 1`. */
async function hookRuns(turnId: string): Promise<Record<string, number>> {
  const lines = (await readFile(join(fixture.cluster.home, "hooks.log"), "utf8")).split("\n");
  const runs: Record<string, number> = {};
  for (const line of lines.filter((each) => each.includes(turnId))) {
    const { hook_event_name: name } = JSON.parse(line) as { hook_event_name: string };
    runs[name] = (runs[name] ?? 0) + 1;
  }
  return runs;
}

/** Rule evaluations of all running replicas since their start. */
async function evaluations(): Promise<number> {
  const ports = fixture.cluster
    .replicas()
    .flatMap(({ service, healthPort }) => (service === "agent-core" && healthPort !== null ? [healthPort] : []));
  assert.equal(ports.length, 2);
  let sum = 0;
  for (const port of ports) {
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    for (const [, count] of metrics.matchAll(/^parley_permission_evaluations_total\{.*\} (\d+)$/gm))
      sum += Number(count);
  }
  return sum;
}

const exec = (command: string) => `tool: exec ${JSON.stringify({ command })}`;

/** Sends a message whose call needs an approval, and waits for the question. */
async function asked(text: string, conversation: string) {
  const messageId = await fixture.client.post(text, { conversation });
  const turnId = await fixture.begun(messageId);
  const question = await fixture.happens((event) => event.type === "approval.requested" && event.turnId === turnId);
  assert.ok(question.type === "approval.requested");
  return { messageId, turnId, question };
}

const parked = (turnId: string) => fixture.happens((event) => event.type === "turn.parked" && event.turnId === turnId);

const once = { PreToolUse: 1, PermissionRequest: 1, PostToolUse: 1 };

test("runs each hook once and evaluates the rules once when a person approves a call", async () => {
  const before = await evaluations();
  const { messageId, turnId } = await asked(exec("echo ran"), "approved");
  await parked(turnId);
  await fixture.answer(turnId, true);
  const { results, messages } = await fixture.ended(messageId);
  assert.match(results[0]?.content ?? "", /ran/);
  assert.deepEqual(await hookRuns(turnId), once);
  assert.equal((await evaluations()) - before, 1);
  assert.equal(messages.filter(({ role, parts }) => role === "user" && textOf(parts) === note).length, 1);
});

test("runs the arguments of the hook once when a hook has rewritten an approved call", async () => {
  const { messageId, turnId, question } = await asked(exec("echo rewrite-me"), "rewritten");
  assert.equal(question.input, '{"command":"echo rewritten"}');
  await parked(turnId);
  await fixture.answer(turnId, true);
  const { results } = await fixture.ended(messageId);
  assert.match(results[0]?.content ?? "", /rewritten/);
  assert.deepEqual(await hookRuns(turnId), once);
});

// design: 003.15b
test("applies the rules to the arguments that a hook has rewritten, not to those of the model", async () => {
  const { results, turnId } = await fixture.turn(exec("echo close-it"), "closed");
  assert.match(results[0]?.content ?? "", /Rule "exec\(echo closed\*\)" denies this call/);
  assert.deepEqual(await hookRuns(turnId), { PreToolUse: 1 });
  const opened = await asked(exec("echo closed rewrite-me"), "opened");
  assert.equal(opened.question.input, '{"command":"echo rewritten"}');
  await fixture.answer(opened.turnId, false);
  await fixture.ended(opened.messageId);
});

test("checks the arguments of the approver once when the approval changes them", async () => {
  const before = await evaluations();
  const { messageId, turnId, question } = await asked(exec("echo first"), "edited");
  await parked(turnId);
  const answer = { id: question.approvalId, allow: true, always: false, by: "test" };
  await fixture.bus.request(store.approvalDecide, { ...answer, updatedInput: '{"command":"echo second"}' });
  const { results } = await fixture.ended(messageId);
  assert.match(results[0]?.content ?? "", /second/);
  assert.deepEqual(await hookRuns(turnId), { ...once, PreToolUse: 2 });
  assert.equal((await evaluations()) - before, 2);
});

test("denies an approved call, and runs no hook again, when a rule was added meanwhile", async () => {
  const { messageId, turnId } = await asked(exec("echo never"), "changed");
  await parked(turnId);
  const { sessionId } = await fixture.session("http:default:changed");
  await fixture.bus.request(store.sessionUpdate, { sessionId, overrides: { deny: ["exec(echo never)"] } });
  await fixture.answer(turnId, true);
  const { results } = await fixture.ended(messageId);
  assert.match(results[0]?.content ?? "", /^Not allowed: Rule "exec\(echo never\)" denies this call/);
  assert.deepEqual(await hookRuns(turnId), { PreToolUse: 1, PermissionRequest: 1 });
});

test("runs PostToolUse once when the turn parks after the call", async () => {
  const script = `tool: exec {"command": "echo keep-out"}\ntool: exec {"command": "echo later"}`;
  const messageId = await fixture.client.post(script, { conversation: "two" });
  const turnId = await fixture.begun(messageId);
  for (const summary of ["keep-out", "later"]) {
    const question = await fixture.happens(
      (event) =>
        event.type === "approval.requested" && event.turnId === turnId && event.summary.includes(`echo ${summary}`),
    );
    assert.ok(question.type === "approval.requested");
    await fixture.bus.request(store.approvalDecide, {
      id: question.approvalId,
      allow: true,
      always: false,
      by: "test",
    });
  }
  const { results } = await fixture.ended(messageId);
  assert.deepEqual(
    results.map(({ content }) => (content === "[cleaned]" ? content : /later/.exec(content)?.[0])),
    ["[cleaned]", "later"],
  );
  assert.deepEqual(await hookRuns(turnId), { PreToolUse: 2, PermissionRequest: 2, PostToolUse: 2 });
});

test("adds the rules for always when the approved call also granted its host for the turn", async () => {
  const key = "http:default:always";
  const { inboxId } = await fixture.bus.request(store.inboxPut, {
    sessionKey: key,
    message: {
      channel: "http",
      account: "default",
      externalId: "always",
      conversation: "always",
      contact: { id: "always", name: "Owner" },
      role: "owner",
      origin: "user",
      tainted: true,
      parts: [{ type: "text", text: 'tool: web_fetch {"url": "http://127.0.0.1:9/page"}' }],
      replyTo: null,
    },
  });
  const turnId = await fixture.begun(inboxId);
  await parked(turnId);
  const question = fixture.events.find((event) => event.type === "approval.requested" && event.turnId === turnId);
  assert.ok(question?.type === "approval.requested");
  const answer = { id: question.approvalId, allow: true, always: true, by: "test" };
  await fixture.bus.request(store.approvalDecide, answer);
  await fixture.ended(inboxId);
  const { overrides } = await fixture.session(key);
  assert.deepEqual(overrides.allowTainted, ["web_fetch(http://127.0.0.1:9/*)"]);
});

test("keeps the question of a hook when the rule that also required approval was removed", async () => {
  const key = "http:default:hook-asks";
  await fixture.turn("say: begin", "hook-asks");
  const { sessionId } = await fixture.session(key);
  await fixture.bus.request(store.sessionUpdate, { sessionId, overrides: { ask: ["glob", "ls"] } });
  const script = `tool: glob {"pattern": "hook-asks"}\ntool: ls {}`;
  const messageId = await fixture.client.post(script, { conversation: "hook-asks" });
  const turnId = await fixture.begun(messageId);
  await parked(turnId);
  await fixture.bus.request(store.sessionUpdate, { sessionId, overrides: { ask: ["ls"] } });
  const questions = fixture.events.filter((event) => event.type === "approval.requested" && event.turnId === turnId);
  const decide = async (tool: string) => {
    const question = questions.find((event) => event.type === "approval.requested" && event.tool === tool);
    assert.ok(question?.type === "approval.requested");
    const answer = { id: question.approvalId, allow: true, always: false, by: "test" };
    await fixture.bus.request(store.approvalDecide, answer);
  };
  await decide("ls");
  const parkings = () => fixture.events.filter((event) => event.type === "turn.parked" && event.turnId === turnId);
  await fixture.happens(
    (event) => parkings().length === 2 || (event.type === "turn.finished" && event.turnId === turnId),
  );
  assert.equal(parkings().length, 2, "it still waits for the question about glob");
  await decide("glob");
  await fixture.ended(messageId);
});

// design: 000.39
test("keeps the notes and the end of calls when another call of their round parks the turn", async () => {
  const withQuestion = async (call: string) => {
    const messageId = await fixture.client.post(`${call}\n${exec("echo asked")}`, { conversation: "notes" });
    const turnId = await fixture.begun(messageId);
    await parked(turnId);
    await fixture.answer(turnId, true);
    return fixture.ended(messageId);
  };
  const { messages } = await withQuestion('tool: glob {"pattern": "*"}');
  assert.equal(messages.filter(({ role, parts }) => role === "user" && textOf(parts) === note).length, 2);
  assert.equal((await withQuestion("tool: sleep {}")).text, "(asleep)");
});

test("runs no hook on failures for a call that was refused before another call parked the turn", async () => {
  const script = `tool: unknown_tool {}\n${exec("echo asked")}`;
  const messageId = await fixture.client.post(script, { conversation: "refused" });
  const turnId = await fixture.begun(messageId);
  await parked(turnId);
  await fixture.answer(turnId, true);
  await fixture.ended(messageId);
  assert.deepEqual(await hookRuns(turnId), once);
});

test("evaluates an approved call again when an older agent-core has asked for it", async () => {
  const before = await evaluations();
  const { messageId, turnId } = await asked(exec("echo old"), "old");
  await parked(turnId);
  const database = new pg.Client({ connectionString: fixture.cluster.databaseUrl });
  await database.connect();
  await database.query("UPDATE parley.approvals SET authorization_json = NULL WHERE turn_id = $1", [turnId]);
  await database.end();
  await fixture.answer(turnId, true);
  const { results } = await fixture.ended(messageId);
  assert.match(results[0]?.content ?? "", /old/);
  assert.deepEqual(await hookRuns(turnId), { PreToolUse: 2, PermissionRequest: 2, PostToolUse: 1 });
  assert.equal((await evaluations()) - before, 2);
});

test("sends the arguments of a hook to PostToolUse when the call waited for an answer", async () => {
  const messageId = await fixture.client.post('tool: ask_user {"question": "ask-me"}', { conversation: "colour" });
  const turnId = await fixture.begun(messageId);
  const question = await fixture.happens((event) => event.type === "question.asked" && event.turnId === turnId);
  assert.ok(question.type === "question.asked" && question.question === "Which colour?");
  await parked(turnId);
  await fixture.client.post("red", { conversation: "colour" });
  await fixture.ended(messageId);
  assert.deepEqual(await hookRuns(turnId), { PreToolUse: 1, PostToolUse: 1 });
  const log = await readFile(join(fixture.cluster.home, "hooks.log"), "utf8");
  const after = log.split("\n").find((line) => line.includes(turnId) && line.includes("PostToolUse"));
  const { tool_input: input } = JSON.parse(after ?? "{}") as { tool_input?: unknown };
  assert.deepEqual(input, { question: "Which colour?" });
});

const starts = () => fixture.cluster.lines.filter((line) => /^agent-core-\d+ .*"healthPort":/.test(line)).length;

test("runs the arguments of a hook, and the hook once, when the leader is killed before an allowed call", async () => {
  await fixture.turn("say: begin", "allowed");
  const { sessionId } = await fixture.session("http:default:allowed");
  await fixture.bus.request(store.sessionUpdate, { sessionId, overrides: { allow: ["exec"] } });
  const before = starts();
  await fixture.cluster.fault("agent.before_tool", "kill");
  const { results, turnId } = await fixture.turn(exec("echo rewrite-me"), "allowed");
  assert.deepEqual(await fixture.cluster.armed(), [], "the leader was killed");
  assert.match(results[0]?.content ?? "", /^rewritten/);
  assert.deepEqual(await hookRuns(turnId), { PreToolUse: 1, PostToolUse: 1 });
  while (starts() === before) await setTimeout(20);
  await fixture.cluster.whenReady("agent-core", 1);
  await fixture.cluster.whenReady("agent-core", 2);
});

test("runs no hook and evaluates no rule again when another leader resumes the approved call", async () => {
  const before = starts();
  await fixture.cluster.fault("agent.after_park", "kill");
  const { messageId, turnId } = await asked(exec("echo taken-over"), "takeover");
  // The supervisor restarts the killed leader.
  while (starts() === before) await setTimeout(20);
  await fixture.cluster.whenReady("agent-core", 1);
  await fixture.cluster.whenReady("agent-core", 2);
  assert.deepEqual(await hookRuns(turnId), { PreToolUse: 1, PermissionRequest: 1 });
  assert.deepEqual(await fixture.cluster.armed(), [], "the leader was killed");
  await fixture.answer(turnId, true);
  const { results } = await fixture.ended(messageId);
  assert.match(results[0]?.content ?? "", /taken-over/);
  assert.deepEqual(await hookRuns(turnId), once);
  // The killed leader evaluated them; its successor and its restarted process did not.
  assert.equal(await evaluations(), 0);
});
