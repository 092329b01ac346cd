// The preset `goat`: the order of what happens in a round of its loop and in each call, and background agents that need approval.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { store, type SessionEvent } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { spawning, startClusterFixture, textsOf, waitingFor, type ClusterFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;

const logged = ["PreToolUse", "PostToolUse", "PostToolUseFailure"];
/** Prints JSON for the call whose input contains `marker`. */
const printing = (marker: string, answer: object) => `[[hooks]]
event = "PostToolUse"
command = '''if grep -q '${marker}'; then printf %s '${JSON.stringify(answer)}'; fi'''
`;

before(async () => {
  fixture = await startClusterFixture(cleanup, "goat", {
    processes: [],
    isolation: "auto",
    settings: `
[agent]
max_output_tokens = 2000
stop_sequences = ["##", "END"]
[limits]
max_usd = 2
[models.known.rehearsal]
context_window = 30000
price = { input = 1, output = 1 }
[permissions]
allow = ["exec", "write"]
${logged.map((event) => `[[hooks]]\nevent = "${event}"\ncommand = "cat > /dev/null; echo ${event} >> hooks.log"\n`).join("")}
${printing("go-on", { hookSpecificOutput: { additionalContext: 'tool: glob {"pattern":"none"}\nthen\nsay: words of the hook' } })}
${printing("secret", { suppressOutput: true })}
[[hooks]]
event = "PreToolUse"
matcher = "Grep"
command = '''printf %s '{"hookSpecificOutput":{"updatedInput":{"pattern":"rewritten"}}}' '''
[[hooks]]
event = "PostToolUse"
matcher = "Grep|Read"
command = "cat >> results.jsonl; echo >> results.jsonl"
`,
  });
});
after(() => cleanup[Symbol.asyncDispose]());

/** Fills half of the context window with an earlier message, and a third with what `read` returns: together more than 80 %. */
async function fill(conversation: string): Promise<string> {
  await fixture.turn(`say: kept\n${"note ".repeat(11_500)}`, conversation);
  await writeFile(join(fixture.cluster.home, "workspace", "long.txt"), `${"line of text\n".repeat(20)}\n`.repeat(180));
  return 'tool: read {"path":"long.txt"}';
}

/** The events of a turn in their order; each kind once in a row. */
function orderOf(turnId: string, kinds: Readonly<Record<string, (event: SessionEvent) => boolean>>): string[] {
  const mine = (event: SessionEvent) =>
    event.type === "message" ? event.message.turnId === turnId : "turnId" in event && event.turnId === turnId;
  return fixture.events
    .filter(mine)
    .flatMap((event) => Object.entries(kinds).flatMap(([name, fits]) => (fits(event) ? [name] : [])))
    .filter((name, index, all) => name !== all[index - 1]);
}

const message = (role: string) => (event: SessionEvent) => event.type === "message" && event.message.role === role;
const ofType = (type: SessionEvent["type"]) => (event: SessionEvent) => event.type === type;

// design: 003.1b, 003.10
test("commits and counts a reply before its calls, then adds a hook's words and compacts before the next request, and reads control with its reply", async () => {
  const script = `${await fill("round")}\n${waitingFor("go-on")}`;
  const id = await fixture.client.post(script, { conversation: "round" });
  const turnId = await fixture.begun(id);
  await fixture.happens((event) => event.type === "tool.started" && event.turnId === turnId && event.tool === "exec");
  const { sessionId } = await fixture.session("http:default:round");
  const soFar = await fixture.log(sessionId);
  assert.deepEqual(
    soFar.at(-1)?.parts.map(({ type }) => type),
    ["tool_call", "tool_call", "finish"],
  );
  const { turn: counted } = await fixture.bus.request(store.turnGet, { turnId });
  assert.deepEqual([counted.modelSteps, counted.cost.micros > 0], [1, true]);
  await fixture.useModel(sessionId, "rehearsal:other");
  await writeFile(join(fixture.cluster.home, "workspace", "go-on"), "");
  const turn = await fixture.ended(id);
  // The rehearsal model follows the newest text.
  assert.equal(turn.text, "words of the hook");
  await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turnId);
  // A change that is made while tools run is read with the next reply.
  assert.deepEqual(
    turn.messages.flatMap(({ role, model }) => (role === "assistant" ? [model] : [])),
    ["rehearsal", "rehearsal", "rehearsal:other"],
  );
  const order = orderOf(turnId, {
    started: ofType("tool.started"),
    finished: ofType("tool.finished"),
    compacted: ofType("compacted"),
    reply: message("assistant"),
    words: (event) => message("user")(event) && event.type === "message" && event.message.from === undefined,
    end: ofType("turn.finished"),
  });
  assert.deepEqual(order, [
    "reply",
    "started",
    "finished",
    "started",
    "finished",
    "words",
    "compacted",
    "reply",
    "started",
    "finished",
    "reply",
    "end",
  ]);
});

// design: 003.22b
test("applies a mode that is set while a command runs to the calls of the next reply", async () => {
  const write = 'tool: write {"path":"by-mode.txt","content":"x"}';
  const script = `${waitingFor("mode-set")}\n${write}\nthen\n${write}\nthen\nsay: over`;
  const id = await fixture.client.post(script, { conversation: "mode" });
  const turnId = await fixture.begun(id);
  await fixture.happens((event) => event.type === "tool.started" && event.turnId === turnId && event.tool === "exec");
  await fixture.client.ask("/mode plan", "mode");
  await writeFile(join(fixture.cluster.home, "workspace", "mode-set"), "");
  const { results } = await fixture.ended(id);
  assert.deepEqual(
    results.map(({ isError }) => isError),
    [false, false, true],
  );
  assert.match(results[2]?.content ?? "", /plan mode/);
});

// design: 003.1b
test("ends at its budget before it would compact", async () => {
  const script = `usage: 3000000 0\n${await fill("budget")}\nthen\nsay: never`;
  const turn = await fixture.turn(script, "budget");
  assert.equal(turn.exitReason, "max_budget");
  await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turn.turnId);
  assert.deepEqual(orderOf(turn.turnId, { compaction: ofType("compaction.started"), end: ofType("turn.finished") }), [
    "end",
  ]);
});

// design: 003.4
test("ends a cut answer without a compaction when the conversation is short", async () => {
  await fixture.turn("say: earlier", "short");
  const turn = await fixture.turn("say: half of it\nstop: max_tokens\nthen\nsay: never", "short");
  assert.deepEqual([turn.exitReason, turn.modelSteps], ["max_tokens", 1]);
  await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turn.turnId);
  assert.ok(!fixture.events.some((event) => event.type === "compacted" && event.turnId === turn.turnId));
});

// design: 003.4
test("compacts and continues a cut answer when the answer fills four fifths of the window", async () => {
  await fixture.turn(`say: kept\n${"note ".repeat(11_500)}`, "full");
  const script = "usage: 28000 1500\nsay: half of it\nstop: max_tokens\nthen\nsay: the rest";
  const turn = await fixture.turn(script, "full");
  assert.deepEqual([turn.exitReason, turn.modelSteps], ["end_turn", 2]);
  assert.match(turn.text ?? "", /^half of it\s+the rest$/);
  const event = await fixture.happens((each) => each.type === "compacted" && each.turnId === turn.turnId);
  assert.ok(event.type === "compacted");
});

// design: 003.15
test("takes each call through its hooks, progress and output, and fills the calls after an interrupt", async () => {
  const calls = [
    'tool: exec {"command":"echo the secret"}',
    'tool: exec {"command":"echo begun; sleep 300"}',
    'tool: write {"path":"never.txt","content":"x"}',
  ];
  const id = await fixture.client.post(`${calls.join("\n")}\nthen\nsay: never`, { conversation: "calls" });
  const turnId = await fixture.begun(id);
  // On a busy machine the first call shows its progress, too.
  const hasBegun = (event: SessionEvent) =>
    event.type === "tool.progress" && JSON.stringify(event.progress).includes("begun");
  await fixture.happens((event) => hasBegun(event) && "turnId" in event && event.turnId === turnId);
  await fixture.stop((await fixture.session("http:default:calls")).sessionId);
  const turn = await fixture.ended(id);
  await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turnId);
  assert.deepEqual([turn.exitReason, turn.results.map(({ isError }) => isError)], ["interrupted", [false, true, true]]);
  assert.deepEqual([turn.results[0]?.content, turn.results[2]?.content], ["[output suppressed by hook]", "Cancelled"]);
  const order = orderOf(turnId, {
    started: ofType("tool.started"),
    progress: hasBegun,
    finished: (event) => event.type === "tool.finished",
  });
  assert.deepEqual(order.slice(0, 4), ["started", "finished", "started", "progress"]);
  const hooks = (await readFile(join(fixture.cluster.home, "hooks.log"), "utf8")).trim().split("\n");
  // The last call had none.
  assert.deepEqual(hooks.slice(-3), ["PreToolUse", "PostToolUse", "PreToolUse"]);
});

// design: 003.15
test("shows the hooks on a result the arguments that the call ran with", async () => {
  const calls = ['tool: Grep {"pattern":"written"}', 'tool: Read {"file_path":"read.txt"}'];
  await writeFile(join(fixture.cluster.home, "workspace", "read.txt"), "rewritten\n");
  const turn = await fixture.turn(`${calls.join("\n")}\nthen\nsay: done`, "arguments");
  assert.match(turn.results[0]?.content ?? "", /read\.txt.*rewritten/s);
  const lines = (await readFile(join(fixture.cluster.home, "results.jsonl"), "utf8")).trim().split("\n");
  const inputs = lines.slice(-2).map((line) => (JSON.parse(line) as { tool_input: unknown }).tool_input);
  assert.deepEqual(inputs, [{ pattern: "rewritten" }, { path: "read.txt" }]);
});

// design: 003.6b
test("keeps which of several stop sequences ended a reply", async () => {
  const turn = await fixture.turn("say: as far as here END and ## no further", "sequence");
  assert.deepEqual([turn.exitReason, turn.text?.trim()], ["stop_sequence", "as far as here"]);
  const finish = turn.messages.at(-1)?.parts.find(({ type }) => type === "finish");
  assert.equal(finish?.type === "finish" && finish.stopSequence, "END");
});

// design: 003.34
test("asks for a background agent's call while its parent goes on, and tells the agent of the denial", async () => {
  const prompt = 'tool: web_fetch {"url":"https://example.org/"}\nthen\nsay: could not look';
  const script = `${spawning("Agent", { prompt, run_in_background: true })}\nthen\nsay: meanwhile`;
  const id = await fixture.client.post(script, { conversation: "background" });
  await fixture.answer(await fixture.begun(id), true);
  const parent = await fixture.ended(id);
  assert.equal(parent.text, "meanwhile");
  const asked = await fixture.happens((event) => event.type === "approval.requested" && event.tool === "web_fetch");
  assert.ok(asked.type === "approval.requested" && asked.turnId !== parent.turnId);
  await fixture.bus.request(store.approvalDecide, { id: asked.approvalId, allow: false, always: false, by: "test" });
  await fixture.happens(
    (event) =>
      event.type === "message" &&
      event.message.from?.origin === "subagent" &&
      /(?<!say: )could not look/.test(textsOf([event.message])[0] ?? ""),
  );
  const [child] = await fixture.children(parent.sessionId);
  const results = (await fixture.log(child?.sessionId ?? "")).flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "tool_result" ? [part.content] : [])),
  );
  assert.match(results.join("\n"), /denied by/);
});
