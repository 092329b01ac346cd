// The rest of the Claude Agent SDK's stream: sub-agents, tokens, hook events, permission modes and control requests.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { AbortError, type PermissionMode, type Query } from "@anthropic-ai/claude-agent-sdk";
import { Cleanup, pollUntil, startTestCluster, type TestCluster } from "@parley/testing";
import { Inputs, sdkClient, type SdkClient } from "./support/client.ts";

const cleanup = new Cleanup();
let cluster: TestCluster;
let sdk: SdkClient;

before(async () => {
  const settings = `[permissions]
allow_bypass = true
ask = ["write(secret*)"]

[subagents]
max_depth = 2

[profiles.worker]
tools = ["ls", "write", "sessions_spawn"]
`;
  cluster = await startTestCluster(cleanup, { processes: [], settings });
  sdk = sdkClient(cluster);
});
after(() => cleanup[Symbol.asyncDispose]());

const file = (name: string) => join(cluster.home, "workspace", name);
const writeOf = (path: string) => `tool: write ${JSON.stringify({ path, content: "x" })}`;
const then = "\nthen\nsay: over";
const spawnOf = (prompt: string, more: object = {}) =>
  `tool: sessions_spawn ${JSON.stringify({ prompt, profile: "worker", ...more })}`;
type Run = Awaited<ReturnType<SdkClient["run"]>>;

/** The messages of a run in order: type, content blocks, and whether a sub-agent sent it. */
function outline(run: Run): string[] {
  return run.messages.flatMap((message) => {
    if (message.type === "result") return ["result"];
    if (message.type !== "assistant" && message.type !== "user") return [];
    const { content } = message.message;
    const blocks = Array.isArray(content) ? content.map((block) => block.type).join("+") : "text";
    return [`${message.parent_tool_use_id === null ? "" : "sub-agent "}${message.type} ${blocks}`];
  });
}

/** The id of the only call of a tool that the run itself made. */
function callOf(run: Run, tool: string): string | undefined {
  const own = run.of("assistant").filter((message) => message.parent_tool_use_id === null);
  const blocks = own.flatMap(({ message }) => message.content);
  return blocks.flatMap((block) => (block.type === "tool_use" && block.name === tool ? [block.id] : []))[0];
}

const task = 'tool: ls {"path":"."}\nthen\nsay: counted';

test("shows the tool calls of a sub-agent before the result of the call that started it", async () => {
  const run = await sdk.run(spawnOf(task) + then);
  assert.deepEqual(outline(run), [
    "assistant tool_use",
    "sub-agent assistant tool_use",
    "sub-agent user tool_result",
    "user tool_result",
    "assistant text",
    "result",
  ]);
  const parents = run.of("assistant").map((message) => message.parent_tool_use_id);
  const spawned = callOf(run, "sessions_spawn");
  assert.ok(spawned !== undefined);
  assert.deepEqual(parents, [null, spawned, null]);
  assert.equal(new Set(run.messages.map(({ session_id }) => session_id)).size, 1);
});

test("forwards the task and the texts of a sub-agent when the program asks for them", async () => {
  const run = await sdk.run(spawnOf(task) + then, { forwardSubagentText: true });
  assert.deepEqual(outline(run).slice(1, 5), [
    "sub-agent user text",
    "sub-agent assistant tool_use",
    "sub-agent user tool_result",
    "sub-agent assistant text",
  ]);
});

test("names the inner call for a sub-agent of a sub-agent", async () => {
  // The start of the inner sub-agent is a live event: the question shows that the outer one is followed by then.
  const outer = `${writeOf("secret-b.txt")}\nthen\n${spawnOf(task)}\nthen\nsay: inner`;
  const run = await sdk.run(spawnOf(outer) + then, {
    canUseTool: async (_tool, updatedInput) => ({ behavior: "allow", updatedInput }),
  });
  const calls = run
    .of("assistant")
    .flatMap(({ parent_tool_use_id, message }) =>
      message.content.flatMap((block) =>
        block.type === "tool_use" ? [{ id: block.id, name: block.name, of: parent_tool_use_id }] : [],
      ),
    );
  const [spawned, written, inner, listed] = calls;
  assert.deepEqual(
    calls.map(({ name, of }) => [name, of]),
    [
      ["sessions_spawn", null],
      ["write", spawned?.id],
      ["sessions_spawn", spawned?.id],
      ["ls", inner?.id],
    ],
  );
  assert.equal(new Set([spawned, written, inner, listed]).size, 4);
});

test("repeats no earlier task when a sub-agent continues", async () => {
  const { result: first } = await sdk.run(spawnOf(task) + then);
  const started = await sdk.run(spawnOf(task) + then, { resume: first.session_id });
  const [note] = started.system("task_started");
  assert.ok(note?.subtype === "task_started");
  const again = await sdk.run(spawnOf(task, { resume: note.task_id }) + then, { resume: first.session_id });
  const resumed = again.system("task_started");
  assert.deepEqual(
    resumed.map((message) => message.subtype === "task_started" && message.task_id),
    [note.task_id],
  );
  assert.equal(outline(again).filter((line) => line.startsWith("sub-agent")).length, 2);
});

test("asks the callback about the calls of a sub-agent", async () => {
  const asked: (string | undefined)[] = [];
  const run = await sdk.run(spawnOf(`${writeOf("secret-a.txt")}${then}`) + then, {
    canUseTool: async (tool, updatedInput, { agentID }) => {
      asked.push(tool, agentID);
      return { behavior: "allow", updatedInput };
    },
  });
  const [note] = run.system("task_started");
  assert.ok(note?.subtype === "task_started");
  assert.deepEqual(asked, ["write", note.task_id]);
  assert.equal(readFileSync(file("secret-a.txt"), "utf8"), "x");
});

test("reports the tokens of each model call with its message", async () => {
  const script = 'usage: 70 3\ntool: ls {"path":"."}\nthen\nusage: 50 9\nsay: done';
  const run = await sdk.run(script, { includePartialMessages: true });
  assert.deepEqual(
    run.of("assistant").map(({ message: { usage } }) => [usage.input_tokens, usage.output_tokens]),
    [
      [70, 3],
      [50, 9],
    ],
  );
  const ends = run.of("stream_event").flatMap(({ event }) => (event.type === "message_delta" ? [event.usage] : []));
  assert.deepEqual(
    ends.map(({ output_tokens }) => output_tokens),
    [3, 9],
  );
  assert.deepEqual([run.result.usage.input_tokens, run.result.usage.output_tokens], [120, 12]);
});

test("streams thinking before the text of a reply", async () => {
  const run = await sdk.run("think: let me see\nsay: done", { includePartialMessages: true });
  const deltas = run.of("stream_event").flatMap(({ event }) => {
    return event.type === "content_block_delta" ? [event.delta.type] : [];
  });
  assert.deepEqual([...new Set(deltas)], ["thinking_delta", "text_delta"]);
  const [reply] = run.of("assistant");
  assert.deepEqual(
    reply?.message.content.map(({ type }) => type),
    ["thinking", "text"],
  );
});

test("reports the calls of the program's hooks on request", async () => {
  const hooks = {
    PreToolUse: [{ hooks: [async () => ({})] }],
    Stop: [{ hooks: [() => Promise.reject(new Error("no disk"))] }],
  };
  const script = `${writeOf("hooked.txt")}${then}`;
  const run = await sdk.run(script, { hooks, includeHookEvents: true });
  const reports = run.messages.flatMap((message) => {
    if (message.type !== "system") return [];
    if (message.subtype === "hook_started") return [[message.hook_name, "started"]];
    return message.subtype === "hook_response" ? [[message.hook_name, message.outcome]] : [];
  });
  assert.deepEqual(reports, [
    ["PreToolUse:write", "started"],
    ["PreToolUse:write", "success"],
    ["Stop", "started"],
    ["Stop", "error"],
  ]);
  assert.equal(run.messages.at(-1)?.type, "result");
  assert.deepEqual((await sdk.run(script, { hooks })).system("hook_started"), []);
});

// design: 003.22b
test("applies every permission mode, and changes it between two messages", async () => {
  const script = `${writeOf("mode.txt")}\nthen\n${writeOf("secret-mode.txt")}${then}`;
  const modes: PermissionMode[] = ["plan", "default", "acceptEdits", "dontAsk", "bypassPermissions"];
  const left = modes.slice(1);
  const inputs = new Inputs(script);
  const run = await sdk.run(inputs, { permissionMode: "plan" }, async (message, query) => {
    if (message.type !== "result") return;
    const next = left.shift();
    if (next === undefined) return inputs.end();
    assert.equal(existsSync(file("mode.txt")), next !== "default");
    await query.setPermissionMode(next);
    inputs.send(script);
  });
  const denied = run.results.map((result) => result.permission_denials.map(({ tool_input }) => tool_input["path"]));
  assert.deepEqual(Object.fromEntries(modes.map((mode, at) => [mode, denied[at]])), {
    plan: ["mode.txt", "secret-mode.txt"],
    default: ["secret-mode.txt"],
    acceptEdits: ["secret-mode.txt"],
    dontAsk: ["secret-mode.txt"],
    bypassPermissions: [],
  });
  const unknown = await sdk.run(script, { permissionMode: "auto" });
  assert.match(unknown.failure?.message ?? "", /"auto" is not a permission mode of Parley/);
});

// design: 003.6
test("stops the turn and ends the executable when the program aborts the query", async () => {
  const abortController = new AbortController();
  const run = await sdk.run("wait: 300\nwords: 3000", { abortController, includePartialMessages: true }, (message) => {
    if (message.type === "stream_event") abortController.abort();
  });
  assert.ok(run.failure instanceof AbortError);
  assert.deepEqual(run.results, []);
  const [init] = run.system("init");
  const url = `${cluster.httpUrls[0]}/api/sessions/${init?.session_id}/messages`;
  const log = async () => (await fetch(url, { headers: { authorization: `Bearer ${cluster.token}` } })).text();
  await pollUntil(async () => (await log()).includes('"reason":"cancelled"'), "the end of the stopped turn");
});

test("describes commands, models, agents and the account", async () => {
  const inputs = new Inputs("say: one");
  await sdk.run(inputs, {}, async (message, query) => {
    if (message.type !== "result") return;
    const compact = (await query.supportedCommands()).find(({ name }) => name === "compact");
    assert.ok(compact !== undefined && compact.description.length > 0);
    assert.deepEqual(
      (await query.supportedModels()).map(({ displayName }) => displayName),
      ["rehearsal"],
    );
    assert.ok((await query.supportedAgents()).some(({ name }) => name === "worker"));
    assert.deepEqual(await query.accountInfo(), {});
    await query.setModel("rehearsal");
    await query.setModel();
    inputs.end();
  });
});

// design: 003.42
test("answers every control request of the client, and continues after the refused ones", async () => {
  const requests: Record<string, (query: Query) => Promise<unknown>> = {
    applyFlagSettings: (query) => query.applyFlagSettings({}),
    backgroundTasks: (query) => query.backgroundTasks(),
    getContextUsage: (query) => query.getContextUsage(),
    readFile: (query) => query.readFile("a.txt"),
    readMcpResource: (query) => query.readMcpResource("none", "a://b"),
    reinitialize: (query) => query.reinitialize(),
    reconnectMcpServer: (query) => query.reconnectMcpServer("none"),
    reloadOutputStyles: (query) => query.reloadOutputStyles(),
    reloadPlugins: (query) => query.reloadPlugins(),
    reloadSkills: (query) => query.reloadSkills(),
    rewindFiles: (query) => query.rewindFiles("00000000-0000-4000-8000-000000000000"),
    seedReadState: (query) => query.seedReadState("a.txt", 1),
    setMcpPermissionModeOverride: (query) => query.setMcpPermissionModeOverride("none", null),
    setMcpServers: (query) => query.setMcpServers({ files: { command: "files" } }),
    stopTask: (query) => query.stopTask("none"),
    toggleMcpServer: (query) => query.toggleMcpServer("none", false),
    updateSettings: (query) => query.updateSettings("localSettings", {}),
  };
  const inputs = new Inputs("say: one");
  const answers = new Map<string, string>();
  const run = await sdk.run(inputs, {}, async (message, query) => {
    if (message.type !== "result") return;
    if (answers.size > 0) return inputs.end();
    for (const [name, ask] of Object.entries(requests)) {
      const answer = ask(query).then(
        () => "done",
        (error: unknown) => String(error),
      );
      answers.set(name, await answer);
    }
    inputs.send("say: still here");
  });
  assert.equal(run.failure, undefined);
  assert.deepEqual(
    run.results.map((result) => result.subtype === "success" && result.result),
    ["one", "still here"],
  );
  const done = [...answers].flatMap(([name, answer]) => (answer === "done" ? [name] : []));
  // The client turns the refusal of `readFile` into null.
  assert.deepEqual(done, ["readFile", "reinitialize"]);
  for (const [name, answer] of answers) if (!done.includes(name)) assert.match(answer, /^Error: .{10}/, name);
});
