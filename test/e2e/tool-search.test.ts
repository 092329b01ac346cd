// A deferred tool: found by a search, called through `tool_call`, and authorized and executed like a direct call. The prefix of
// the conversation stays unchanged.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { store } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { spawning, startClusterFixture, type ClusterFixture } from "./presets/support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;

before(async () => {
  fixture = await startClusterFixture(cleanup, null, {
    processes: ["agent-core"],
    model: true,
    replicas: { "agent-core": 2 },
    settings: `
[session]
policy = "per_conversation"

[tools]
search_above = 10
always = ["read", "write", "message"]

[permissions]
ask = ["cron"]

[compaction]
keep_last = 4
`,
  });
});
after(() => cleanup[Symbol.asyncDispose]());

const wrapped = (tool: string, input: object) => `tool: tool_call ${JSON.stringify({ tool, input })}`;
const searching = (query: string) => `tool: tool_search ${JSON.stringify({ query })}`;
/** The bytes before the conversation (system prompt and tools) in each model call since the `first`. */
const heads = (first: number) =>
  (fixture.cluster.strict?.requests ?? []).slice(first).map(({ system, tools }) => JSON.stringify([system, tools]));
const asked = () => fixture.cluster.strict?.requests.length ?? 0;

test("lists the immediate tools with their definitions, and the others by name", async () => {
  await fixture.turn("say: hello", "list");
  const { tools, system } = fixture.lastRequest();
  assert.deepEqual(tools, ["message", "read", "tool_call", "tool_search", "write"]);
  assert.match(system, /tool_search finds more tools/);
  const search = fixture.cluster.strict?.requests.at(-1)?.tools.find(({ name }) => name === "tool_search");
  assert.match(String(search?.description), /\n- cron: /);
  assert.match(String(search?.description), /\n- exec: /);
});

test("names the found tool, not tool_call, when it requests approval", async () => {
  const first = asked();
  const script = [
    searching("schedule a reminder"),
    wrapped("cron", { action: "list" }),
    'tool: memory_search {"query":"tea"}',
    "say: found, called",
  ].join("\nthen\n");
  const message = await fixture.client.post(script, { conversation: "flow" });
  const turnId = await fixture.begun(message);
  await fixture.answer(turnId, true);
  const turn = await fixture.ended(message);
  assert.equal(turn.text, "found, called");
  const [definition, called, direct] = turn.results;
  assert.match(definition?.content ?? "", /^\{"name":"cron",/);
  assert.deepEqual([called?.name, called?.isError], ["cron", false]);
  assert.deepEqual([direct?.name, direct?.isError], ["memory_search", false]);

  // Subscribers and the approval see the direct call, without `tool_call`.
  const question = fixture.events.find((event) => event.type === "approval.requested" && event.turnId === turnId);
  assert.equal(question?.type === "approval.requested" && question.tool, "cron");
  const begun = fixture.events.flatMap((event) =>
    event.type === "tool.started" && event.turnId === turnId ? [[event.tool, event.input]] : [],
  );
  assert.deepEqual(begun[1], ["cron", '{"action":"list"}']);
  const written = turn.messages.flatMap(({ parts }) => parts.filter((part) => part.type === "tool_call"));
  assert.deepEqual(
    written.map(({ name }) => name),
    ["tool_search", "cron", "memory_search"],
  );

  // The model sees its original call, after the same prefix as before.
  assert.equal(new Set(heads(first)).size, 1);
  const sent = fixture.lastRequest().messages.join("\n");
  assert.match(sent, /call\(tool_call \{"tool":"cron","input":\{"action":"list"\}\}\)/);
  assert.match(sent, /call\(memory_search /);
  assert.deepEqual(fixture.cluster.strict?.refusals, []);
});

test("does not run a call that a person denies, direct or indirect", async () => {
  for (const call of [wrapped("cron", { action: "list" }), 'tool: cron {"action":"list"}']) {
    const message = await fixture.client.post(`${call}\nthen\nsay: as you wish`, { conversation: "refused" });
    await fixture.answer(await fixture.begun(message), false);
    const turn = await fixture.ended(message);
    assert.match(turn.results[0]?.content ?? "", /^Not run: denied by test/);
  }
});

test("continues unchanged when the leader dies between the search and the call", async () => {
  const first = asked();
  const script = [searching("reminder"), wrapped("cron", { action: "list" }), "say: still here"].join("\nthen\n");
  await fixture.cluster.fault("agent.after_tools", "kill");
  const message = await fixture.client.post(script, { conversation: "crash" });
  const turnId = await fixture.begun(message);
  await fixture.answer(turnId, true);
  const turn = await fixture.ended(message);
  assert.equal(turn.text, "still here");
  assert.deepEqual(await fixture.cluster.armed(), [], "nobody died");
  assert.deepEqual(
    turn.results.map(({ name, isError }) => [name, isError]),
    [
      ["tool_search", false],
      ["cron", false],
    ],
  );
  const questions = fixture.events.filter((event) => event.type === "approval.requested" && event.turnId === turnId);
  assert.equal(questions.length, 1);
  assert.equal(new Set(heads(first)).size, 1);
});

test("reports an invalid indirect call with the errors of the named tool", async () => {
  const script = [wrapped("grep", { patern: "x" }), wrapped("nosuch", {}), "tool: tool_call {}", "say: ok"].join(
    "\nthen\n",
  );
  const { results } = await fixture.turn(script, "wrong");
  assert.match(results[0]?.content ?? "", /Invalid arguments for grep/);
  assert.match(results[1]?.content ?? "", /^Tool not found: nosuch\. Available tools: .*grep/);
  assert.match(results[2]?.content ?? "", /^Invalid arguments for tool_call: tool: /);
});

test("calls only tools of its profile when a sub-agent uses tool_call", async () => {
  const prompt = [wrapped("exec", { command: "touch no" }), wrapped("glob", { pattern: "*" }), "say: tried"].join(
    "\nthen\n",
  );
  const { sessionId } = await fixture.turn(
    `${spawning("sessions_spawn", { prompt, profile: "reader", mode: "wait" })}\nthen\nsay: ok`,
    "sub",
  );
  const [child] = await fixture.children(sessionId);
  const log = await fixture.log(child?.sessionId ?? "");
  const results = log.flatMap(({ parts }) => parts.filter((part) => part.type === "tool_result"));
  assert.deepEqual(
    results.map(({ name, isError }) => [name, isError]),
    [
      ["exec", true],
      ["glob", false],
    ],
  );
  assert.match(results[0]?.content ?? "", /^Tool not found: exec\./);
});

test("refuses an indirect call of a tool that changes something in plan mode", async () => {
  const { sessionId } = await fixture.turn("say: hello", "plan");
  await fixture.bus.request(store.sessionUpdate, { sessionId, overrides: { permissionMode: "plan" } });
  const script = [
    wrapped("write", { path: "plan.txt", content: "x" }),
    wrapped("glob", { pattern: "*.txt" }),
    "say: ok",
  ];
  const { results } = await fixture.turn(script.join("\nthen\n"), "plan");
  assert.deepEqual(
    results.map(({ name, isError }) => [name, isError]),
    [
      ["write", true],
      ["glob", false],
    ],
  );
  assert.match(results[0]?.content ?? "", /^Not allowed: /);
});

test("lists the recently used tools after a compaction", async () => {
  const { sessionId } = await fixture.turn(`${wrapped("glob", { pattern: "*" })}\nthen\nsay: looked`, "compact");
  await fixture.turn(`say: I see\n${"a long story ".repeat(2_000)}`, "compact");
  await fixture.turn(`${wrapped("grep", { pattern: "x" })}\nthen\nsay: looked again`, "compact");
  assert.ok(!fixture.lastRequest().tools.includes("grep"));
  const compacted = await fixture.client.fetch(`/api/sessions/${sessionId}/compact`, { method: "POST", body: "{}" });
  assert.match(await compacted.text(), /"outcome":"compacted"/);
  const turn = await fixture.turn("say: and on", "compact");
  assert.equal(turn.sessionId, sessionId);
  assert.deepEqual(fixture.lastRequest().tools, ["grep", "message", "read", "tool_call", "tool_search", "write"]);
});
