// A turn on a whole cluster that uses MCP servers from npm over both transports, asks a person first where the operator wants it, and is
// answered over Parley's own MCP server. Servers ask the person in the middle of a call, answer with pictures, say how far they are, and have
// prompts that people say.
import assert from "node:assert/strict";
import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import { z } from "zod";
import { everything, filesystem, memory, startEverything } from "../../services/tool-runner/test/mcp/programs.ts";

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;
let folder: string;

before(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "parley-mcp-")));
  cleanup.add(() => rm(folder, { recursive: true, force: true }));
  const settings = `
[session]
policy = "per_conversation"

[mcp.servers.local]
command = "${process.execPath}"
args = ["${everything}", "stdio"]
risk = "low"

[mcp.servers.remote]
url = "${await startEverything(cleanup)}"
risk = "low"

[mcp.servers.files]
command = "${process.execPath}"
args = ["${filesystem}", "${folder}"]
roots = []
risk = "low"

[mcp.servers.graph]
command = "${process.execPath}"
args = ["${memory}"]
env = ["PARLEY_TOOL_UNUSED", "MEMORY_FILE_PATH"]
risk = "high"

[mcp.servers.absent]
command = "no-such-program-anywhere"

[profiles.worker]
tools = ["mcp__local__trigger-elicitation-request"]

[permissions]
allow = ["mcp__files__write_file", "mcp__files__read_text_file"]
ask = ["mcp__graph__create_entities"]
`;
  cluster = await startTestCluster(cleanup, {
    model: true,
    replicas: { "agent-core": 2 },
    settings,
    env: { "tool-runner": { PARLEY_TOOL_UNUSED: "x", MEMORY_FILE_PATH: join(folder, "graph.jsonl") } },
  });
  client = apiClient(cluster.httpUrls, cluster.token);
});
after(() => cleanup[Symbol.asyncDispose]());

/** What the model was given for its calls, in the last request it was sent. */
function results(): string {
  const sent: unknown = cluster.strict?.requests.at(-1);
  return JSON.stringify(sent);
}

// design: 002.26
test("a turn uses servers over stdio and HTTP, and is told what they answered", async () => {
  const answer = await client.ask(
    'tool: mcp__local__echo {"message":"by stdio"}\ntool: mcp__remote__get-sum {"a":20,"b":22}\nthen\nsay: both answered',
    "both",
  );
  assert.equal(answer, "both answered");
  assert.match(results(), /Echo: by stdio/);
  assert.match(results(), /sum of 20 and 22 is 42/);
});

test("a turn writes a file through a server and reads it back", async () => {
  const path = join(folder, "note.txt");
  const write = JSON.stringify({ path, content: "kept by the server" });
  await client.ask(
    `tool: mcp__files__write_file ${write}\nthen\ntool: mcp__files__read_text_file ${JSON.stringify({ path })}\nthen\nsay: done`,
    "files",
  );
  assert.equal(await readFile(path, "utf8"), "kept by the server");
  assert.match(results(), /kept by the server/);
});

test("a call that needs a yes waits for it; the yes comes over Parley's own MCP server", async () => {
  const entities = [{ name: "Ada", entityType: "person", observations: ["likes engines"] }];
  const message = await client.post(
    `tool: mcp__graph__create_entities ${JSON.stringify({ entities })}\nthen\nsay: remembered`,
    { conversation: "graph" },
  );
  const Pending = z.object({ approvals: z.array(z.object({ id: z.string(), tool: z.string() })) });
  let pending = Pending.parse(await parley("approvals_list", {}));
  while (pending.approvals.length === 0) pending = Pending.parse(await parley("approvals_list", {}));
  const [approval] = pending.approvals;
  assert.equal(approval?.tool, "mcp__graph__create_entities");
  const decided = await parley("approval_decide", { id: approval?.id ?? "", allow: true });
  assert.equal(z.object({ outcome: z.string() }).parse(decided).outcome, "decided");
  const turn = await client.settled(message);
  assert.equal(turn.text, "remembered");
  assert.match(await readFile(join(folder, "graph.jsonl"), "utf8"), /likes engines/);
});

// design: 002.26
test("a server that is not there is named where people look, and stops nobody", async () => {
  const Status = z.object({
    replicas: z.array(z.looseObject({ service: z.string(), details: z.record(z.string(), z.unknown()) })),
  });
  const { replicas } = Status.parse(await (await client.fetch("/api/status")).json());
  const runner = replicas.find(({ service }) => service === "tool-runner");
  assert.match(String(runner?.details["mcp"]), /absent: \w+, 0 tools \(.*program .* not found.*\).*local: ready/);
});

/** Events of a conversation from now on, until one is found; at the end the stream is over. */
async function heard<T>(conversation: string, find: (event: unknown) => T | undefined): Promise<T> {
  const over = new AbortController();
  const session = encodeURIComponent(`http:default:${conversation}`);
  const response = await client.fetch(`/api/events?session=${session}&after=0`, { signal: over.signal });
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    const frames = text.split("\n\n");
    text = frames.pop() ?? "";
    for (const frame of frames) {
      const data = /^data: (.*)$/m.exec(frame)?.[1];
      const found = data === undefined ? undefined : find(JSON.parse(data));
      if (found === undefined) continue;
      over.abort();
      return found;
    }
  }
  throw new Error("the stream of events has ended");
}

const Asked = z.object({ type: z.literal("question.asked"), question: z.string() });
const Progress = z.object({
  type: z.literal("tool.progress"),
  progress: z.object({ done: z.number(), total: z.number().nullable() }),
});
const Finished = z.object({ type: z.literal("turn.finished"), text: z.string() });

const asked = (conversation: string, wanted: RegExp) =>
  heard(conversation, (event) => {
    const { data } = Asked.safeParse(event);
    return data !== undefined && wanted.test(data.question) ? data.question : undefined;
  });

async function command(conversation: string, text: string): Promise<string> {
  const response = await client.fetch("/api/messages", {
    method: "POST",
    body: JSON.stringify({ conversation, text }),
  });
  assert.equal(response.status, 200);
  return z.object({ text: z.string() }).parse(await response.json()).text;
}

for (const server of ["local", "remote"]) {
  // design: 003.35
  test(`a server asks the person in the middle of a call (${server}): what they say next are the answers, and no turns of their own`, async () => {
    const conversation = `asked-${server}`;
    const message = await client.post(`tool: mcp__${server}__trigger-elicitation-request {}\nthen\nsay: thank you`, {
      conversation,
    });
    await asked(conversation, new RegExp(`The MCP server "${server}", which I am using for this task, asks you`));
    const name = await client.post("Ada Lovelace", { conversation });
    await asked(conversation, /^2 of 13/);
    await client.post("done", { conversation });
    const turn = await client.settled(message);
    assert.equal(turn.text, "thank you");
    assert.equal((await client.settled(name)).turnId, turn.turnId);
    assert.match(results(), /Name: Ada Lovelace/);
    assert.match(results(), /Outcome: the user answered name: /);
  });
}

test("/stop ends a turn whose server waits for a person, and the next message is a message", async () => {
  const conversation = "stopped";
  const message = await client.post("tool: mcp__local__trigger-elicitation-request {}\nthen\nsay: never", {
    conversation,
  });
  await asked(conversation, /asks you/);
  await command(conversation, "/stop");
  assert.equal((await client.settled(message)).state, "cancelled");
  assert.equal(await client.ask("say: still here", conversation), "still here");
});

test("a question outlives its leader: another one goes on with the call, and the answer reaches it", async () => {
  const conversation = "leaderless";
  const message = await client.post("tool: mcp__local__trigger-elicitation-request {}\nthen\nsay: went on", {
    conversation,
  });
  await asked(conversation, /asks you/);
  await cluster.kill("agent-core", 1, "SIGKILL");
  await client.post("decline", { conversation });
  assert.equal((await client.settled(message)).text, "went on");
  assert.match(results(), /User declined/);
});

test("a tool-runner that dies takes its question with it: the model is told that the outcome is unknown, and nobody is waited for", async () => {
  const conversation = "runnerless";
  const message = await client.post("tool: mcp__local__trigger-elicitation-request {}\nthen\nsay: went on", {
    conversation,
  });
  await asked(conversation, /asks you/);
  await cluster.kill("tool-runner", 1, "SIGKILL");
  const turn = await client.settled(message);
  assert.equal(turn.text, "went on");
  assert.match(results(), /Outcome unknown|outcome is unknown|took effect is unknown/i);
  assert.equal(await client.ask("say: no answer to anything", conversation), "no answer to anything");
});

test("a question that comes in a sub-agent's turn is declined, since nobody talks with it", async () => {
  const before = cluster.strict?.requests.length ?? 0;
  const task = "tool: mcp__local__trigger-elicitation-request {}\nthen\nsay: the child is done";
  const spawn = JSON.stringify({ prompt: task, profile: "worker" });
  await client.ask(`tool: sessions_spawn ${spawn}\nthen\nsay: done`, "parent");
  const Request = z.object({ messages: z.array(z.unknown()) });
  const told = cluster.strict?.requests.slice(before).map((sent) => Request.parse(sent).messages);
  assert.match(JSON.stringify(told), /declined: no person can answer, a sub-agent works on this/);
});

test("a picture that a server answers with is shown to the model", async () => {
  await client.ask("tool: mcp__local__get-tiny-image {}\nthen\nsay: seen", "picture");
  assert.match(results(), /"type":"image","source":\{"type":"base64","media_type":"image\/png"/);
});

test("how far a call is can be watched while it runs", async () => {
  const conversation = "progress";
  const watched = heard(conversation, (event) => Progress.safeParse(event).data?.progress);
  const input = JSON.stringify({ duration: 0.3, steps: 3 });
  await client.ask(`tool: mcp__remote__trigger-long-running-operation ${input}\nthen\nsay: ready`, conversation);
  assert.deepEqual(await watched, { done: 1, total: 3 });
});

// design: 003.35
test("prompts of servers are listed, and said as the person's own message, resources and all", async () => {
  const conversation = "prompts";
  const listed = await command(conversation, "/mcp prompts local");
  assert.match(listed, /^\/mcp__local__args-prompt <city> \[state\]: A prompt with two arguments/m);
  assert.match(await command(conversation, "/mcp"), /^local: ready, \d+ tools$/m);
  assert.match(await command(conversation, '/mcp__local__args-prompt "New York" NY'), /was sent to the agent/);
  await heard(conversation, (event) => Finished.safeParse(event).data);
  assert.match(results(), /\[prompt \\"args-prompt\\" of the MCP server local\].*What's weather in New York, NY\?/);
  await command(conversation, "/mcp__remote__resource-prompt resourceType=Text resourceId=7");
  let ends = 0;
  await heard(conversation, (event) => (Finished.safeParse(event).success && ++ends === 2 ? true : undefined));
  assert.match(results(), /\[untrusted [0-9a-f]{8}: a resource of the MCP server remote/);
});

test("a prompt that there is not, or that lacks an argument, is answered and never sent to the model", async () => {
  const before = cluster.strict?.requests.length;
  assert.match(
    await command("unknown", "/mcp__local__nothing"),
    /has no prompt "nothing"\. Its prompts: simple-prompt, args-prompt, /,
  );
  assert.match(await command("unknown", "/mcp__nobody__nothing"), /Unknown MCP server "nobody"/);
  assert.match(await command("unknown", "/mcp__local__args-prompt"), /it requires city/);
  assert.equal(cluster.strict?.requests.length, before);
});

const Answer = z.object({ result: z.object({ structuredContent: z.unknown(), isError: z.boolean().optional() }) });

/** One call of Parley's own MCP server, as a client without a library makes it. */
async function parley(name: string, args: Record<string, unknown>): Promise<unknown> {
  const response = await client.fetch("/mcp", {
    method: "POST",
    headers: { accept: "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } }),
  });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const data = /^data: (.*)$/m.exec(text)?.[1] ?? text;
  const { result } = Answer.parse(JSON.parse(data));
  assert.notEqual(result.isError, true, text);
  return result.structuredContent;
}
