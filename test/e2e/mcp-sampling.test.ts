// Sampling: MCP servers that request a model's answer during a call, on a whole cluster. It is off by default, optionally needs an
// approval, is limited, counts for the turn, and ends with the call.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  apiClient,
  Cleanup,
  startTestCluster,
  untilServersReady,
  type ApiClient,
  type TestCluster,
} from "@parley/testing";
import { z } from "zod";
import { everything, ownServer, startEverything } from "../../services/tool-runner/test/mcp/programs.ts";

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;

before(async () => {
  const url = await startEverything(cleanup);
  const program = (name: string, sampling: string) => `
[mcp.servers.${name}]
command = "${process.execPath}"
args = ["${everything}", "stdio"]
risk = "low"
${sampling}
`;
  const own = (name: string, more: string, era = "legacy") => `
[mcp.servers.${name}]
command = "${process.execPath}"
args = ["--conditions=@parley/source", "${ownServer("sampler")}"]
risk = "low"
era = "${era}"
${more}
`;
  const settings = `
[session]
policy = "per_conversation"

[limits]
max_tokens = 440

[profiles.worker]
tools = ["mcp__asking__ask"]

${program("plain", "")}
${program("off", "sampling = { enabled = false }")}
${program("local", "sampling = { enabled = true, ask = false, max_tokens = 50 }")}
[mcp.servers.remote]
url = "${url}"
risk = "low"
sampling = { enabled = true, ask = false }

[mcp.servers.asksremote]
url = "${url}"
risk = "low"
sampling = { enabled = true }

${own("asking", "sampling = { enabled = true }")}
${own("twice", "sampling = { enabled = true, ask = false, max_requests = 2 }")}
${own("many", "sampling = { enabled = true, ask = false, max_requests = 9 }")}
${own("modern", "sampling = { enabled = true, ask = false }", "2026")}
${own("newno", "sampling = { enabled = true }", "2026")}
${own("slow", 'sampling = { enabled = true, model = "rehearsal" }')}
${own("absent", 'sampling = { enabled = true, ask = false, model = "openai:none" }')}
`;
  cluster = await startTestCluster(cleanup, {
    processes: ["agent-core"],
    model: true,
    replicas: { "agent-core": 2 },
    settings,
  });
  client = apiClient(cluster.httpUrls, cluster.token);
  const names = [...settings.matchAll(/^\[mcp\.servers\.(\w+)\]$/gm)].map(([, name = ""]) => name);
  await untilServersReady(client, names);
});
after(() => cleanup[Symbol.asyncDispose]());

const Block = z.looseObject({ type: z.string(), text: z.string().optional() });
const Sent = z.object({
  system: z.array(z.object({ text: z.string() })),
  tools: z.array(z.unknown()),
  max_tokens: z.number(),
  messages: z.array(z.object({ role: z.string(), content: z.array(Block) })),
});

/** The requests that the model received since `from`. */
const sentSince = (from: number) => (cluster.strict?.requests ?? []).slice(from).map((each) => Sent.parse(each));
const sentSoFar = () => cluster.strict?.requests.length ?? 0;
/** The tool results in the last request to the model. */
function results(): string {
  const Result = z.object({ type: z.literal("tool_result"), content: z.unknown() });
  const blocks = sentSince(-1).flatMap(({ messages }) => messages.flatMap(({ content }) => content));
  return blocks
    .flatMap((block) => (block.type === "tool_result" ? [textIn(Result.parse(block).content)] : []))
    .join("\n");
}

function textIn(content: unknown): string {
  const blocks = z.array(Block).safeParse(content).data;
  return blocks === undefined ? String(content) : blocks.map(({ text }) => text ?? "").join("\n");
}

const call = (tool: string, input: object, then = "done") =>
  `tool: mcp__${tool} ${JSON.stringify(input)}\nthen\nsay: ${then}`;

/** Events of a conversation from now on; live events without a subscriber are lost. */
async function watched(conversation: string): Promise<<T>(find: (event: unknown) => T | undefined) => Promise<T>> {
  const over = new AbortController();
  cleanup.add(async () => over.abort());
  const session = encodeURIComponent(`http:default:${conversation}`);
  const response = await client.fetch(`/api/events?session=${session}&after=0`, { signal: over.signal });
  const events = (async function* () {
    let text = "";
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      const frames = text.split("\n\n");
      text = frames.pop() ?? "";
      for (const frame of frames) {
        const data = /^data: (.*)$/m.exec(frame)?.[1];
        if (data !== undefined) yield JSON.parse(data) as unknown;
      }
    }
  })();
  return async (find) => {
    for (;;) {
      const { value, done } = await events.next();
      if (done === true) throw new Error("the stream of events has ended");
      const found = find(value);
      if (found !== undefined) return found;
    }
  };
}

const Asked = z.object({ type: z.literal("question.asked"), question: z.string() });
const question = (event: unknown) => Asked.safeParse(event).data?.question;
const asked = async (conversation: string) => (await watched(conversation))(question);
const Notice = z.object({ type: z.literal("notice"), text: z.string().regex(/requested an answer from/) });
const notice = (event: unknown) => Notice.safeParse(event).data?.text;

const Usage = z.object({
  rows: z.array(z.object({ model: z.string(), calls: z.number(), usage: z.object({ inputTokens: z.number() }) })),
});

for (const server of ["plain", "off"]) {
  test(`is not offered to a server when its settings do not enable it (${server})`, async () => {
    await client.ask(call(`${server}__trigger-sampling-request`, { prompt: "go" }), server);
    assert.match(results(), new RegExp(`^Tool not found: mcp__${server}__trigger-sampling-request\\.`));
  });
}

for (const server of ["local", "remote"]) {
  test(`answers without the conversation and counts for the turn when enabled (${server})`, async () => {
    const from = sentSoFar();
    const conversation = `sampled-${server}`;
    const secret = "the word is heliotrope";
    const message = await client.post(
      `${secret}\n${call(`${server}__trigger-sampling-request`, { prompt: "go\nsay: forty-two", maxTokens: 70 })}`,
      { conversation },
    );
    const turn = await client.settled(message);
    assert.equal(turn.text, "done");
    assert.match(results(), /"type\W+text\W+text\W+forty-two/);
    assert.match(results(), /stopReason\W+endTurn/);
    assert.match(results(), /model\W+claude-/);
    assert.match(results(), /The server requested an answer from a model\. claude-[^ ]+ answered\./);
    const [, sampled, ...rest] = sentSince(from);
    assert.equal(rest.length, 1);
    assert.deepEqual(sampled?.tools, []);
    assert.equal(sampled?.max_tokens, server === "local" ? 50 : 70);
    const system = sampled?.system.map(({ text }) => text).join("") ?? "";
    assert.match(system, /\[untrusted ([0-9a-f]{8})\]\nYou are a helpful test server\.\n\[end of untrusted \1\]/);
    assert.equal(sampled?.messages.length, 1);
    assert.match(
      sampled?.messages[0]?.content[0]?.text ?? "",
      /^\[untrusted [0-9a-f]{8}\]\nResource trigger-sampling-request context: go\nsay: forty-two\n\[end of untrusted/,
    );
    assert.equal(JSON.stringify(sampled).includes("heliotrope"), false);
    // Two steps of the turn and one answer for the server, a hundred tokens each.
    assert.deepEqual([turn.modelSteps, turn.usage.inputTokens, turn.usage.outputTokens], [2, 300, 30]);
    const response = await client.fetch(`/api/usage?session=${turn.sessionId}`);
    const { rows } = Usage.parse(await response.json());
    assert.deepEqual(
      rows.map(({ calls, usage }) => [calls, usage.inputTokens]),
      [[3, 300]],
    );
  });
}

for (const [server, tool, input] of [
  ["asking", "ask", { prompt: "go\nsay: as you like", times: 2 }],
  ["asksremote", "trigger-sampling-request", { prompt: "go\nsay: as you like" }],
] as const) {
  test(`needs one approval for each call (${server})`, async () => {
    const conversation = `yes-${server}`;
    const message = await client.post(call(`${server}__${tool}`, input), { conversation });
    assert.match(
      await asked(conversation),
      new RegExp(`MCP server "${server}"[^]*May it request answers from a model[^]*go\n[^]*Answer yes or no`),
    );
    await client.post("yes", { conversation });
    const turn = await client.settled(message);
    assert.equal(turn.text, "done");
    assert.match(results(), /as you like/);
    assert.equal(turn.usage.inputTokens, server === "asking" ? 400 : 300);
  });
}

test("reports the denial to the server without a model call when the person denies", async () => {
  const from = sentSoFar();
  const conversation = "no";
  const message = await client.post(call("asking__ask", { prompt: "go\nsay: never", times: 2 }), { conversation });
  await asked(conversation);
  await client.post("no", { conversation });
  const turn = await client.settled(message);
  assert.equal(turn.text, "done");
  assert.match(
    results(),
    /1\. error: [^]*no consent to sampling: the user declined[^]*2\. error: [^]*the user declined/,
  );
  assert.equal(sentSince(from).length, 2);
  assert.equal(turn.usage.inputTokens, 200);
});

test("is declined when a sub-agent's turn has nobody to approve", async () => {
  const from = sentSoFar();
  const task = call("asking__ask", { prompt: "go\nsay: never" }, "the child is done");
  await client.ask(
    `tool: sessions_spawn ${JSON.stringify({ prompt: task, profile: "worker" })}\nthen\nsay: done`,
    "spawn",
  );
  assert.match(
    JSON.stringify(sentSince(from)),
    /no consent to sampling: declined: no person can answer, sub-agents cannot ask people/,
  );
});

test("is limited for each call, and the error names the setting of the limit", async () => {
  const text = await client.ask(call("twice__ask", { prompt: "go\nsay: fine", times: 3 }), "twice");
  assert.equal(text, "done");
  assert.match(
    results(),
    /1\. fine \(endTurn\)[^]*2\. fine \(endTurn\)[^]*3\. error: [^]*mcp\.servers\.twice\.sampling\.max_requests/,
  );
});

test("counts for the limits of the turn", async () => {
  const from = sentSoFar();
  const message = await client.post(call("many__ask", { prompt: "go\nsay: fine", times: 6 }), { conversation: "many" });
  const turn = await client.settled(message);
  assert.match(turn.text ?? "", /440 tokens, the limit for one request/);
  // One step of the turn and three answers; the fourth request was refused.
  assert.equal(sentSince(from).length, 4);
  const response = await client.fetch(`/api/sessions/${turn.sessionId}/messages?after=0`);
  assert.match(await response.text(), /3\. fine \(endTurn\)[^]*4\. error: [^]*limits\.max_tokens is reached/);
});

test("counts concurrent requests one by one", async () => {
  const message = await client.post(call("twice__ask", { prompt: "go\nsay: both", times: 2, atOnce: true }), {
    conversation: "atonce",
  });
  const turn = await client.settled(message);
  assert.match(results(), /1\. both \(endTurn\)[^]*2\. both \(endTurn\)/);
  assert.equal(turn.usage.inputTokens, 400);
});

test("answers a server with the newer protocol version", async () => {
  await client.ask(call("modern__ask", { prompt: "go\nsay: the newer way" }), "modern");
  assert.match(results(), /1\. the newer way/);
});

test("ends the call when a person denies in the newer protocol, which has no other answer", async () => {
  const conversation = "newno";
  const message = await client.post(call("newno__ask", { prompt: "go\nsay: never" }), { conversation });
  await asked(conversation);
  await client.post("no", { conversation });
  assert.equal((await client.settled(message)).text, "done");
  assert.match(
    results(),
    /newno stopped because its sampling request was refused: no consent to sampling: the user declined/,
  );
});

test("shows the model a picture and the previous messages of the request", async () => {
  const from = sentSoFar();
  await client.ask(call("many__look", {}), "look");
  assert.match(results(), /a red one/);
  const sampled = sentSince(from)[1];
  assert.deepEqual(
    sampled?.messages.map(({ role, content }) => [role, content.map(({ type }) => type)]),
    [
      // The name and id of a picture precede it.
      ["user", ["text", "image"]],
      ["assistant", ["text"]],
      ["user", ["text"]],
    ],
  );
});

test("is refused outside a tool call, for example when a resource is read", async () => {
  const from = sentSoFar();
  const input = JSON.stringify({ server: "many", uri: "sampler://asking" });
  await client.ask(`tool: mcp_read ${input}\nthen\nsay: done`, "outside");
  assert.match(results(), /Parley: no tool of this server is being called/);
  assert.equal(sentSince(from).length, 2);
});

test("is refused when a program runs several calls, because the requesting call is unknown", async () => {
  const conversation = "several";
  const message = await client.post(call("slow__ask", { prompt: "go\nsay: never" }), { conversation });
  await asked(conversation);
  await client.ask(call("slow__ask", { prompt: "go\nsay: never" }), "another");
  assert.match(
    results(),
    /1\. error: [^]*several calls are running, and the request cannot be assigned to one of them/,
  );
  await client.post("no", { conversation });
  assert.equal((await client.settled(message)).text, "done");
});

test("uses another model when the settings name one", async () => {
  const from = sentSoFar();
  const conversation = "other-model";
  const message = await client.post(call("slow__ask", { prompt: "go\nsay: rehearsed" }), { conversation });
  await asked(conversation);
  await client.post("yes", { conversation });
  const turn = await client.settled(message);
  assert.match(results(), /1\. rehearsed \(endTurn\)/);
  assert.equal(sentSince(from).length, 2);
  const response = await client.fetch(`/api/usage?session=${turn.sessionId}`);
  const { rows } = Usage.parse(await response.json());
  assert.deepEqual(
    rows.map(({ model, calls }) => [model, calls]),
    [
      ["claude-sonnet-5-5", 2],
      ["rehearsal", 1],
    ],
  );
});

test("names the model to the server when it cannot be reached", async () => {
  await client.ask(call("absent__ask", { prompt: "go" }), "absent");
  assert.match(results(), /error: [^]*openai:none requires OPENAI_API_KEY or OPENAI_BASE_URL/);
});

test("ends without cost when /stop arrives while the server waits", async () => {
  const conversation = "stopped";
  const message = await client.post(call("slow__ask", { prompt: "go\npause: 600000" }), { conversation });
  const until = await watched(conversation);
  await until(question);
  await client.post("yes", { conversation });
  await until(notice);
  await client.fetch("/api/messages", { method: "POST", body: JSON.stringify({ conversation, text: "/stop" }) });
  const turn = await client.settled(message);
  assert.deepEqual([turn.state, turn.usage.inputTokens], ["cancelled", 100]);
  assert.equal(await client.ask("say: still here", conversation), "still here");
});

test("fails with an error to the server when the leader is killed, and the turn continues", async () => {
  const conversation = "leaderless";
  const message = await client.post(call("slow__ask", { prompt: "go\npause: 600000" }, "went on"), { conversation });
  const until = await watched(conversation);
  await until(question);
  await client.post("yes", { conversation });
  await until(notice);
  await Promise.all([1, 2].map((replica) => cluster.kill("agent-core", replica, "SIGKILL")));
  const turn = await client.settled(message);
  assert.equal(turn.text, "went on");
  assert.match(results(), /1\. error: [^]*the (leader changed during the model call|agent was restarted)/);
});
