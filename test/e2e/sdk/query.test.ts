// The Claude Agent SDK drives a run: prompts, streams, limits, sessions and flags.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  apiClient,
  checkoutPrograms,
  Cleanup,
  startTestCluster,
  type ApiClient,
  type TestCluster,
} from "@parley/testing";
import { z } from "zod";
import { Inputs, sdkClient, userMessage, type SdkClient } from "./support/client.ts";

const cleanup = new Cleanup();
let cluster: TestCluster;
let sdk: SdkClient;
let client: ApiClient;

before(async () => {
  const settings =
    '[context]\nbuilt_in_skills = true\n[models.known.rehearsal]\nprice = { input = 1_000, output = 0 }\n[permissions]\nallow_bypass = true\n[llm.down]\nbase_url = "http://127.0.0.1:9/v1"\n';
  cluster = await startTestCluster(cleanup, { processes: [], settings });
  sdk = sdkClient(cluster);
  client = apiClient(cluster.httpUrls, cluster.token);
});
after(() => cleanup[Symbol.asyncDispose]());

const Messages = z.object({
  messages: z.array(
    z.object({ role: z.string(), parts: z.array(z.looseObject({ type: z.string(), text: z.string().optional() })) }),
  ),
});

/** The parts of the messages that people sent in a session. */
async function saidIn(sessionId: string) {
  const response = await client.fetch(`/api/sessions/${sessionId}/messages`);
  const { messages } = Messages.parse(await response.json());
  return messages.filter(({ role }) => role === "user").map(({ parts }) => parts);
}

// design: 003.8, 003.41
test("answers a prompt with init, the reply and a result", async () => {
  const run = await sdk.run('tool: ls {"path":"."}\nthen\nsay: forty-two', {
    permissionMode: "acceptEdits",
    pathToClaudeCodeExecutable: checkoutPrograms["parley-sdk"],
  });
  assert.equal(run.failure, undefined);
  const [init] = run.messages;
  assert.ok(init?.type === "system" && init.subtype === "init");
  assert.deepEqual([init.permissionMode, init.model, init.mcp_servers], ["acceptEdits", "rehearsal", []]);
  assert.equal(init.cwd, `${cluster.home}/workspace`);
  assert.ok(init.tools.includes("exec") && init.slash_commands.includes("compact") && init.agents?.includes("reader"));
  assert.deepEqual(init.skills, ["cron", "github", "skill-creator", "summarize", "weather"]);
  const [asked, answered] = run.of("assistant");
  assert.deepEqual(
    asked?.message.content.map(({ type }) => type),
    ["tool_use"],
  );
  assert.deepEqual(
    answered?.message.content.map((block) => block.type === "text" && block.text),
    ["forty-two"],
  );
  const { result } = run;
  assert.ok(result.subtype === "success");
  assert.deepEqual([result.result, result.num_turns, result.stop_reason], ["forty-two", 2, "end_turn"]);
  assert.ok(result.total_cost_usd > 0 && result.usage.input_tokens > 0 && result.duration_api_ms <= result.duration_ms);
  assert.equal(result.modelUsage["rehearsal"]?.inputTokens, result.usage.input_tokens);
});

test("streams partial messages with the arguments of tool calls", async () => {
  const script = 'say: looking\ntool: ls {"path":"."}\nthen\nsay: done and done';
  const run = await sdk.run(script, { includePartialMessages: true });
  const events = run.of("stream_event").map(({ event }) => event);
  const json = events.flatMap((event) =>
    event.type === "content_block_delta" && event.delta.type === "input_json_delta" ? [event.delta.partial_json] : [],
  );
  assert.deepEqual(JSON.parse(json.join("")), { path: "." });
  const stops = events.flatMap((event) => (event.type === "message_delta" ? [event.delta.stop_reason] : []));
  assert.deepEqual(stops, ["tool_use", "end_turn"]);
  const order = run.messages.flatMap((message) => {
    if (message.type === "stream_event") return message.event.type === "message_start" ? ["start"] : [];
    return message.type === "assistant" || message.type === "user" ? [message.type] : [];
  });
  assert.deepEqual(order, ["start", "assistant", "user", "start", "assistant"]);
});

// design: 003.47
test("answers each message of a stream and adds up the cost of the run", async () => {
  const inputs = new Inputs("usage: 1000 0\nsay: one");
  const run = await sdk.run(inputs, {}, (message) => {
    if (message.type !== "result") return;
    if (message.num_turns === 1) inputs.send("usage: 500 0\nsay: two");
    else inputs.end();
  });
  assert.equal(run.failure, undefined);
  assert.deepEqual(
    run.results.map((each) => each.subtype === "success" && each.result),
    ["one", "two"],
  );
  assert.deepEqual(
    run.results.map((each) => each.total_cost_usd),
    [1, 1.5],
  );
  assert.equal(run.system("init").length, 1);
  assert.equal(new Set(run.messages.map(({ session_id }) => session_id)).size, 1);
});

// design: 003.47
test("counts the cost of sub-agents in the result and in the limit of the run", async () => {
  const spawn = { prompt: "usage: 3000 0\nsay: looked", profile: "reader" };
  const script = `usage: 500 0\ntool: sessions_spawn ${JSON.stringify(spawn)}\nthen\nusage: 500 0\nsay: one`;
  const inputs = new Inputs(script);
  const run = await sdk.run(inputs, { maxBudgetUsd: 4 }, (message) => {
    if (message.type !== "result") return;
    if (message.subtype === "success") inputs.send("say: two");
    else inputs.end();
  });
  assert.deepEqual(
    run.results.map((each) => [each.subtype, each.total_cost_usd]),
    [
      ["success", 4],
      ["error_max_budget_usd", 4],
    ],
  );
});

/** A picture of one pixel. */
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

test("stores an image and a document of a message with it", async () => {
  const pdf = Buffer.from("%PDF-1.4\n%%EOF\n").toString("base64");
  const inputs = new Inputs([
    { type: "text", text: "say: seen" },
    { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } },
    { type: "document", title: "a.pdf", source: { type: "base64", media_type: "application/pdf", data: pdf } },
  ]);
  inputs.end();
  const run = await sdk.run(inputs);
  const [parts] = await saidIn(run.result.session_id);
  const files = parts?.filter(({ type }) => type === "blob").map(({ mediaType }) => mediaType);
  assert.deepEqual(files, ["image/png", "application/pdf"]);
});

test("answers content that cannot be used by an error result, and goes on", async () => {
  const remote = { type: "image", source: { type: "url", url: "https://example.org/a.png" } } as const;
  const inputs = new Inputs([{ type: "text", text: "look" }, remote]);
  const run = await sdk.run(inputs, {}, (message) => {
    if (message.type !== "result") return;
    if (message.is_error) inputs.send("say: still here");
    else inputs.end();
  });
  const [refused, answered] = run.results;
  assert.ok(refused?.subtype === "error_during_execution");
  assert.match(refused.errors.join(), /remote files are not fetched/);
  assert.ok(answered?.subtype === "success" && answered.result === "still here");
});

// design: 002.18, 003.30
test("resumes, continues and forks a session", async () => {
  const { result: first } = await sdk.run("say: one");
  const { result: resumed } = await sdk.run("say: two", { resume: first.session_id });
  assert.equal(resumed.session_id, first.session_id);
  const { result: continued } = await sdk.run("say: three", { continue: true });
  assert.equal(continued.session_id, first.session_id);
  const { result: forked } = await sdk.run("say: four", { resume: first.session_id, forkSession: true });
  assert.notEqual(forked.session_id, first.session_id);
  assert.deepEqual([(await saidIn(first.session_id)).length, (await saidIn(forked.session_id)).length], [3, 4]);
});

// design: 003.6, 003.47
test("ends the run with error_max_turns and error_max_budget_usd over all its messages", async () => {
  const script = 'usage: 600 0\ntool: ls {"path":"."}\nthen\nusage: 600 0\nsay: done';
  const twice = async function* () {
    yield userMessage(script);
    yield userMessage(script);
  };
  const turns = await sdk.run(twice(), { maxTurns: 3 });
  assert.deepEqual(
    turns.results.map(({ subtype, num_turns }) => [subtype, num_turns]),
    [
      ["success", 2],
      ["error_max_turns", 3],
    ],
  );
  const money = await sdk.run(twice(), { maxBudgetUsd: 1.8 });
  assert.deepEqual(
    money.results.map(({ subtype, total_cost_usd }) => [subtype, total_cost_usd]),
    [
      ["success", 1.2],
      ["error_max_budget_usd", 1.8],
    ],
  );
});

test("interrupts the turn and answers the next message", async () => {
  const inputs = new Inputs("wait: 200\nwords: 3000");
  let interrupted = false;
  const run = await sdk.run(inputs, { includePartialMessages: true }, async (message, query) => {
    if (message.type === "stream_event" && !interrupted) {
      interrupted = true;
      await query.interrupt();
    }
    if (message.type !== "result") return;
    if (message.is_error) inputs.send("say: next");
    else inputs.end();
  });
  assert.deepEqual(
    run.results.map(({ subtype }) => subtype),
    ["error_during_execution", "success"],
  );
  assert.equal(run.failure, undefined);
});

test("answers control requests, and gives the reason where it cannot", async () => {
  const inputs = new Inputs("say: one");
  const refusals: string[] = [];
  const refusal = (error: unknown) => void refusals.push(String(error));
  const run = await sdk.run(inputs, {}, async (message, query) => {
    if (message.type !== "result") return;
    assert.deepEqual(await query.mcpServerStatus(), []);
    assert.ok((await query.supportedCommands()).some(({ name }) => name === "compact"));
    await query.setPermissionMode("plan");
    await query.setModel("no-such-model").catch(refusal);
    await query.getContextUsage().catch(refusal);
    await query.setMaxThinkingTokens(5).catch(refusal);
    inputs.end();
  });
  assert.equal(run.failure, undefined);
  assert.equal(refusals.length, 3);
  assert.match(refusals[1] ?? "", /there is no control request "get_context_usage"/);
  assert.match(refusals[2] ?? "", /set_effort/);
});

test("sends instructions of the program with its first message", async () => {
  const systemPrompt = { type: "preset", preset: "claude_code", append: "Answer in French." } as const;
  const run = await sdk.run("say: oui", { systemPrompt });
  const [parts] = await saidIn(run.result.session_id);
  assert.deepEqual(
    parts?.map(({ text }) => text),
    ["[Instructions of the program that sent this message]\nAnswer in French.", "say: oui"],
  );
});

test("applies the permission mode and the rules to the run alone", async () => {
  const script = 'tool: write {"path":"a.txt","content":"a"}\nthen\ntool: ls {"path":"."}\nthen\nsay: over';
  const options = { permissionMode: "plan", disallowedTools: ["LS"] } as const;
  const run = await sdk.run(script, { ...options, disallowedTools: [...options.disallowedTools] });
  assert.deepEqual(
    run.result.permission_denials.map(({ tool_name }) => tool_name),
    ["write", "ls"],
  );
  const again = await sdk.run('tool: ls {"path":"."}\nthen\nsay: over', { resume: run.result.session_id });
  assert.deepEqual(again.result.permission_denials, []);
  const few = await sdk.run('tool: ls {"path":"."}\nthen\nsay: over', { tools: ["Read", "Grep"] });
  assert.deepEqual(
    few.result.permission_denials.map(({ tool_name }) => tool_name),
    ["ls"],
  );
});

const countSchema = {
  type: "object",
  properties: { beans: { type: "integer" } },
  required: ["beans"],
  additionalProperties: false,
};

test("returns an answer that matches the program's schema as structured output", async () => {
  const outputFormat = { type: "json_schema" as const, schema: countSchema };
  const run = await sdk.run('tool: ls {"path":"."}\nthen\nsay: {"beans":12}', { outputFormat });
  assert.ok(run.result.subtype === "success");
  assert.deepEqual(run.result.structured_output, { beans: 12 });
  const [parts] = await saidIn(run.result.session_id);
  assert.match(parts?.[0]?.text ?? "", /one JSON value that matches this JSON schema[^]*"beans"/);
});

test("requests an answer that does not match the schema again, then ends with an error", async () => {
  const outputFormat = { type: "json_schema" as const, schema: countSchema };
  const run = await sdk.run("say: twelve beans", { outputFormat });
  assert.ok(run.result.subtype === "error_max_structured_output_retries");
  assert.match(run.result.errors[0] ?? "", /does not match the schema/);
  assert.deepEqual([run.results.length, run.result.num_turns], [1, 4]);
  const said = await saidIn(run.result.session_id);
  assert.match(said.at(-1)?.at(-1)?.text ?? "", /^Your answer does not match: .*Answer again/);
});

test("answers with the fallback model when the chosen one fails, and restores both afterwards", async () => {
  const model = "down:any";
  const run = await sdk.run("say: instead", { model, fallbackModel: "down:other, rehearsal" });
  assert.ok(run.result.subtype === "success");
  assert.equal(run.result.result, "instead");
  const changes = run.messages.filter(({ type, ...rest }) => type === "system" && "to_model" in rest);
  assert.equal(JSON.stringify(changes).match(/"to_model":"rehearsal"/g)?.length, 1);
  const session = await client.fetch(`/api/sessions/${run.result.session_id}`);
  assert.doesNotMatch(await session.text(), /down:any|fallbackModels/);
});

test("refuses options that the cluster cannot honour, with the reason", async () => {
  for (const [options, reason] of [
    [{ additionalDirectories: ["/tmp"] }, /--add-dir is not supported/],
    [{ fallbackModel: "nobody:knows" }, /nobody:knows/],
    [{ allowedTools: ["Bash(git *)"] }, /wildcard.*parley\.toml/],
    [{ extraArgs: { "brew-tea": null } }, /--brew-tea is not a flag/],
  ] as const) {
    const run = await sdk.run("say: never", { ...(options as object) });
    assert.match(run.failure?.message ?? "", reason);
    assert.equal(run.results.length, 0);
  }
});
