// Hooks of the Claude Agent SDK beyond those on tool calls and prompts: who is called when, and what the output changes.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  type HookCallback,
  type HookEvent,
  type HookInput,
  type HookJSONOutput,
  type Options,
} from "@anthropic-ai/claude-agent-sdk";
import { apiClient, Cleanup, pollUntil, startTestCluster, type TestCluster } from "@parley/testing";
import { z } from "zod";
import { Inputs, sdkClient, toolResults, type SdkClient } from "./support/client.ts";

const cleanup = new Cleanup();
let cluster: TestCluster;
let sdk: SdkClient;

before(async () => {
  const settings = `[permissions]
ask = ["write(secret*)"]
allow = ["write"]
deny = ["write(closed*)"]

[subagents]
max_depth = 2

[profiles.worker]
tools = ["ls"]

[profiles.writer]
tools = ["write"]

[profiles.manager]
tools = ["sessions_spawn"]

[agent]
max_output_tokens = 1000

[models.known.rehearsal]
context_window = 24000

[compaction]
keep_last = 2
`;
  cluster = await startTestCluster(cleanup, { processes: [], settings });
  sdk = sdkClient(cluster);
});
after(() => cleanup[Symbol.asyncDispose]());

const file = (name: string) => join(cluster.home, "workspace", name);
const writeOf = (path: string) => `tool: write ${JSON.stringify({ path, content: "x" })}`;
const then = "\nthen\nsay: over";

/** The argument `path` of a call. */
const pathIn = (input: unknown) => z.looseObject({ path: z.string() }).parse(input).path;

/** Hooks that record their inputs, by event. `answer`: their output. */
function recorder(events: readonly HookEvent[], answer: (input: HookInput) => HookJSONOutput = () => ({})) {
  const inputs: HookInput[] = [];
  const hook: HookCallback = async (input) => {
    inputs.push(input);
    return answer(input);
  };
  const hooks: Options["hooks"] = Object.fromEntries(events.map((event) => [event, [{ hooks: [hook] }]]));
  return {
    hooks,
    names: () => inputs.map(({ hook_event_name }) => hook_event_name),
    of: <E extends HookEvent>(event: E) =>
      inputs.filter((input): input is Extract<HookInput, { hook_event_name: E }> => input.hook_event_name === event),
  };
}

test("calls SubagentStart and SubagentStop with the id, the type and the report of a sub-agent", async () => {
  const seen = recorder(["SubagentStart", "SubagentStop"]);
  const task = { prompt: 'tool: ls {"path":"."}\nthen\nsay: counted', profile: "worker" };
  const run = await sdk.run(`tool: sessions_spawn ${JSON.stringify(task)}${then}`, { hooks: seen.hooks });
  assert.deepEqual(seen.names(), ["SubagentStart", "SubagentStop"]);
  const [started] = seen.of("SubagentStart");
  const [stopped] = seen.of("SubagentStop");
  const [note] = run.system("task_started");
  assert.ok(note?.subtype === "task_started");
  assert.deepEqual([started?.agent_id, started?.agent_type], [note.task_id, "worker"]);
  assert.deepEqual([stopped?.agent_id, stopped?.last_assistant_message], [note.task_id, "counted"]);
  assert.equal(stopped?.session_id, run.result.session_id);
});

// design: 003.46
test("calls the hooks on tool calls for the calls of sub-agents too, also of nested ones", async () => {
  const seen = recorder(
    ["PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "PermissionDenied"],
    (input) => {
      if (input.hook_event_name !== "PreToolUse") return {};
      const isDenied = input.tool_name === "write" && pathIn(input.tool_input) === "guarded.txt";
      const hookEventName = "PreToolUse" as const;
      return isDenied ? { hookSpecificOutput: { hookEventName, permissionDecision: "deny" } } : {};
    },
  );
  const inner = `${writeOf("guarded.txt")}\n${writeOf("closed.txt")}\n${writeOf("inner.txt")}\nthen\nsay: inner done`;
  const outer = `tool: sessions_spawn ${JSON.stringify({ prompt: inner, profile: "writer" })}\nthen\nsay: outer done`;
  const run = await sdk.run(`tool: sessions_spawn ${JSON.stringify({ prompt: outer, profile: "manager" })}${then}`, {
    hooks: seen.hooks,
  });
  assert.equal(run.result.subtype, "success");
  const of = (event: HookEvent) =>
    seen.of(event).map((input) => `${input.agent_type ?? "run"} ${"tool_name" in input ? input.tool_name : ""}`);
  assert.deepEqual(of("PreToolUse"), ["run sessions_spawn", "manager sessions_spawn", "writer write", "writer write"]);
  assert.deepEqual(of("PermissionDenied"), ["writer write"]);
  assert.deepEqual(
    run.system("permission_denied").map((message) => message.subtype === "permission_denied" && message.agent_id),
    [seen.of("PermissionDenied")[0]?.agent_id],
  );
  assert.deepEqual(of("PostToolUseFailure"), ["writer write", "writer write"]);
  assert.deepEqual(of("PostToolUse"), ["writer write", "manager sessions_spawn", "run sessions_spawn"]);
  assert.deepEqual(of("PostToolBatch"), ["writer ", "manager ", "run "]);
  const [, managed, written] = seen.of("PreToolUse");
  assert.notEqual(managed?.agent_id, undefined);
  assert.notEqual(written?.agent_id, managed?.agent_id);
  assert.deepEqual(
    ["guarded.txt", "closed.txt", "inner.txt"].map((name) => existsSync(file(name))),
    [false, false, true],
  );
});

test("calls PostToolBatch once for all calls of a reply", async () => {
  const seen = recorder(["PostToolUse", "PostToolBatch"]);
  await sdk.run(`tool: ls {"path":"."}\n${writeOf("batch.txt")}${then}`, { hooks: seen.hooks });
  const batches = seen.of("PostToolBatch").map(({ tool_calls }) => tool_calls.map(({ tool_name }) => tool_name));
  assert.deepEqual(
    batches.map((names) => names.toSorted()),
    [["ls", "write"]],
  );
  assert.equal(seen.of("PostToolUse").length, 2);
});

test("ends the turn when an observing hook returns continue: false", async () => {
  const seen = recorder(["PostToolBatch"], () => ({ continue: false, stopReason: "enough" }));
  // The results of calls are stored together with the next reply, here the command, which ends only with the turn.
  const script = 'tool: ls {"path":"."}\nthen\ntool: exec {"command":"sleep 300","wait_seconds":120}\nthen\nsay: never';
  const run = await sdk.run(script, { hooks: seen.hooks });
  assert.equal(run.result.subtype, "error_during_execution");
});

test("lets PermissionRequest decide instead of the callback, with changed arguments", async () => {
  const asked: string[] = [];
  const seen = recorder(["PermissionRequest"], (input) => {
    const path = input.hook_event_name === "PermissionRequest" ? pathIn(input.tool_input) : "";
    if (path === "secret-c.txt") return {};
    const updatedInput = { path: "secret-moved.txt", content: "by the hook" };
    const decision =
      path === "secret-a.txt"
        ? { behavior: "allow" as const, updatedInput }
        : { behavior: "deny" as const, message: "not this one" };
    return { hookSpecificOutput: { hookEventName: "PermissionRequest", decision } };
  });
  const script = ["secret-a.txt", "secret-b.txt", "secret-c.txt"].map(writeOf).join("\nthen\n");
  const run = await sdk.run(script + then, {
    hooks: seen.hooks,
    canUseTool: async (_tool, input) => {
      asked.push(String(input["path"]));
      return { behavior: "allow", updatedInput: input };
    },
  });
  assert.equal(readFileSync(file("secret-moved.txt"), "utf8"), "by the hook");
  assert.deepEqual(
    ["secret-a.txt", "secret-b.txt"].map((name) => existsSync(file(name))),
    [false, false],
  );
  assert.match(toolResults(run)[1] ?? "", /not this one/);
  assert.deepEqual(asked, ["secret-c.txt"]);
  const [first] = seen.of("PermissionRequest");
  assert.deepEqual([first?.tool_name, first?.permission_suggestions?.[0]?.type], ["write", "addRules"]);
});

test("lets PermissionRequest decide without a callback, and denies what it leaves open", async () => {
  const seen = recorder(["PermissionRequest"], (input) =>
    input.hook_event_name === "PermissionRequest" && pathIn(input.tool_input) === "secret-d.txt"
      ? { hookSpecificOutput: { hookEventName: "PermissionRequest", decision: { behavior: "allow" } } }
      : {},
  );
  const run = await sdk.run(`${writeOf("secret-d.txt")}\nthen\n${writeOf("secret-e.txt")}${then}`, {
    hooks: seen.hooks,
  });
  assert.deepEqual(
    ["secret-d.txt", "secret-e.txt"].map((name) => existsSync(file(name))),
    [true, false],
  );
  assert.match(toolResults(run)[1] ?? "", /Nobody can approve/);
});

test("calls PermissionDenied for a call that a rule denies, with the reason", async () => {
  const seen = recorder(["PermissionDenied"]);
  const run = await sdk.run(writeOf("closed.txt") + then, { hooks: seen.hooks });
  const [denied] = seen.of("PermissionDenied");
  assert.deepEqual([denied?.tool_name, pathIn(denied?.tool_input)], ["write", "closed.txt"]);
  assert.ok(denied !== undefined && toolResults(run)[0]?.includes(denied.reason));
});

/** Starts a background sub-agent that works for long, and ends the run. Returns its session and the run. */
async function leaveBehind(options: Options) {
  const task = { prompt: "pause: 600000\nsay: never", profile: "worker", run_in_background: true };
  const run = await sdk.run(`tool: sessions_spawn ${JSON.stringify(task)}${then}`, options);
  assert.equal(run.result.subtype, "success");
  const [started] = run.system("task_started");
  assert.ok(started?.subtype === "task_started");
  return { id: started.task_id, run };
}

async function isAtWork(sessionId: string): Promise<boolean> {
  const response = await apiClient(cluster.httpUrls, cluster.token).fetch(`/api/sessions/${sessionId}`);
  const Running = z.object({ session: z.object({ runningTurnId: z.string().nullable() }) });
  return Running.parse(await response.json()).session.runningTurnId !== null;
}

// design: 003.46
test("stops a background sub-agent at the end of a run whose hook reviews each call", async () => {
  const allow: HookCallback = async () => ({
    hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "allow" },
  });
  const { id, run } = await leaveBehind({ hooks: { PreToolUse: [{ hooks: [allow] }] } });
  await run.untilStderr(new RegExp(`the sub-agent ${id} was stopped: `));
  await pollUntil(async () => !(await isAtWork(id)), "the end of the sub-agent");
});

test("leaves a background sub-agent at work at the end of a run without such a hook", async () => {
  const { id, run } = await leaveBehind({});
  await pollUntil(() => isAtWork(id), "the sub-agent at work");
  assert.doesNotMatch(run.stderr, /was stopped/);
  const client = apiClient(cluster.httpUrls, cluster.token);
  await client.fetch(`/api/sessions/${id}/cancel`, { method: "POST", body: "{}" });
});

test("calls Notification when the callback is asked", async () => {
  const seen = recorder(["Notification"]);
  await sdk.run(writeOf("secret-n.txt") + then, {
    hooks: seen.hooks,
    canUseTool: async (_tool, updatedInput) => ({ behavior: "allow", updatedInput }),
  });
  const [asked] = seen.of("Notification");
  assert.equal(asked?.notification_type, "permission_prompt");
  assert.match(asked?.message ?? "", /write/);
});

test("calls StopFailure instead of Stop when a turn fails", async () => {
  const seen = recorder(["Stop", "StopFailure"]);
  const run = await sdk.run("fail: auth always\nsay: never", { hooks: seen.hooks });
  assert.deepEqual(seen.names(), ["StopFailure"]);
  assert.ok(run.result.subtype === "error_during_execution");
  assert.equal(seen.of("StopFailure")[0]?.error_details, run.result.errors[0]);
});

test("gives Stop the last answer, and continues with its additional context", async () => {
  const seen = recorder(["Stop"], (input) =>
    input.hook_event_name === "Stop" && !input.stop_hook_active
      ? { hookSpecificOutput: { hookEventName: "Stop", additionalContext: "say: one more" } }
      : {},
  );
  const run = await sdk.run("say: first", { hooks: seen.hooks });
  assert.deepEqual(
    seen.of("Stop").map((input) => [input.last_assistant_message, input.stop_hook_active]),
    [
      ["first", false],
      ["one more", true],
    ],
  );
  assert.deepEqual(
    run.results.map((result) => result.subtype === "success" && result.result),
    ["one more"],
  );
});

const outputFormat = {
  type: "json_schema" as const,
  schema: { type: "object", properties: { beans: { type: "integer" } }, required: ["beans"] },
};

test("calls no Stop hook and checks no schema when a command is answered", async () => {
  const seen = recorder(["Stop", "StopFailure"]);
  const run = await sdk.run("/status", { hooks: seen.hooks, outputFormat });
  assert.deepEqual(seen.names(), []);
  assert.ok(run.result.subtype === "success");
  assert.deepEqual([run.results.length, run.result.num_turns, run.result.structured_output], [1, 0, undefined]);
});

test("requests an answer again three times for each message, also after one without a result", async () => {
  let retries = 0;
  const seen = recorder(["UserPromptSubmit"], (input) => {
    if (input.hook_event_name !== "UserPromptSubmit" || !input.prompt.startsWith("Your answer does not match"))
      return {};
    retries += 1;
    return retries === 1 ? { decision: "block", reason: "not now" } : {};
  });
  const inputs = new Inputs("say: twelve beans");
  const run = await sdk.run(inputs, { hooks: seen.hooks, outputFormat }, (message) => {
    if (message.type !== "result") return;
    if (message.subtype === "error_during_execution") inputs.send("say: thirteen beans");
    else inputs.end();
  });
  assert.deepEqual(
    run.results.map(({ subtype }) => subtype),
    ["error_during_execution", "error_max_structured_output_retries"],
  );
  assert.equal(retries, 1 + 3);
});

test("sends the context of SessionStart with the first turn when a refused message and a command come first", async () => {
  const seen = recorder(["SessionStart", "UserPromptSubmit"], (input) => {
    const { hook_event_name: hookEventName } = input;
    if (hookEventName === "SessionStart")
      return { hookSpecificOutput: { hookEventName, additionalContext: "It is raining." } };
    const isRefused = hookEventName === "UserPromptSubmit" && input.prompt === "say: never";
    return isRefused ? { decision: "block", reason: "not now" } : {};
  });
  const left = ["/status", "say: over"];
  // A session has an id from its first turn on.
  const { result: earlier } = await sdk.run("say: hello");
  const inputs = new Inputs("say: never");
  const run = await sdk.run(inputs, { hooks: seen.hooks, resume: earlier.session_id }, (message) => {
    if (message.type !== "result") return;
    const next = left.shift();
    if (next === undefined) inputs.end();
    else inputs.send(next);
  });
  assert.equal(run.results.length, 3);
  const response = await apiClient(cluster.httpUrls, cluster.token).fetch(
    `/api/sessions/${earlier.session_id}/messages`,
  );
  assert.match(await response.text(), /It is raining\./);
});

test("calls SessionStart with its source, and SessionEnd after the last result", async () => {
  const seen = recorder(["SessionStart", "SessionEnd"]);
  const first = await sdk.run("say: one", { hooks: seen.hooks });
  assert.deepEqual(seen.names(), ["SessionStart", "SessionEnd"]);
  assert.deepEqual([seen.of("SessionStart")[0]?.source, seen.of("SessionEnd")[0]?.reason], ["startup", "other"]);
  const resume = first.result.session_id;
  const again = recorder(["SessionStart"]);
  await sdk.run("say: two", { hooks: again.hooks, resume });
  await sdk.run("say: three", { hooks: again.hooks, resume, forkSession: true });
  assert.deepEqual(
    again.of("SessionStart").map(({ source }) => source),
    ["resume", "fork"],
  );
});

test("does not compact on request when PreCompact refuses it", async () => {
  const seen = recorder(["PreCompact"], () => ({ decision: "block", reason: "keep it all" }));
  const run = await sdk.run("/compact the figures", { hooks: seen.hooks });
  assert.ok(run.result.subtype === "error_during_execution");
  assert.deepEqual(run.result.errors, ["keep it all"]);
  const [asked] = seen.of("PreCompact");
  assert.deepEqual([asked?.trigger, asked?.custom_instructions], ["manual", "the figures"]);
});

// design: 003.27
test("calls PreCompact and PostCompact when a turn is compacted, with the summary, and reports the boundary once", async () => {
  for (let at = 0; at < 8; at++) await writeFile(file(`long${at}.txt`), `${at}\n${"words and words\n".repeat(1_000)}`);
  const script = Array.from({ length: 8 }, (_, at) => `tool: read {"path":"long${at}.txt"}`).join("\nthen\n");
  const seen = recorder(["PreCompact", "PostCompact"]);
  const run = await sdk.run(script + then, { hooks: seen.hooks });
  assert.deepEqual(seen.names().slice(0, 2), ["PreCompact", "PostCompact"]);
  const boundaries = run.system("compact_boundary");
  assert.equal(boundaries.length, seen.of("PostCompact").length);
  const [boundary] = boundaries;
  assert.ok(boundary?.subtype === "compact_boundary");
  const { pre_tokens: before, post_tokens: after = before } = boundary.compact_metadata;
  assert.ok(after < before, `${after} of ${before} tokens`);
  const [done] = seen.of("PostCompact");
  assert.deepEqual([seen.of("PreCompact")[0]?.trigger, done?.trigger], ["auto", "auto"]);
  assert.ok(done !== undefined && done.compact_summary.length > 0);
});

// design: 003.46b
test("reports outputs of hooks that change nothing", async () => {
  const run = await sdk.run(`tool: ls {"path":"."}${then}`, {
    hooks: {
      PostToolUse: [
        { hooks: [async () => ({ hookSpecificOutput: { hookEventName: "PostToolUse", updatedToolOutput: "none" } })] },
      ],
    },
  });
  await run.untilStderr(/PostToolUse hook: updatedToolOutput has no effect here/);
});

test("refuses a hook that it cannot call, with the reason", async () => {
  const run = await sdk.run("say: never", { hooks: recorder(["TaskCreated"]).hooks });
  assert.match(run.failure?.message ?? "", /TaskCreated cannot be called for a program: there are no teams of agents/);
});
