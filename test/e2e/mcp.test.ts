// A turn on a whole cluster that uses MCP servers from npm over both transports and requests approval where the operator wants it;
// the approval comes over Parley's own MCP server. Servers send elicitations during a call, return pictures, report progress, and
// have prompts that people send.
import assert from "node:assert/strict";
import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import {
  apiClient,
  Cleanup,
  startTestCluster,
  untilServersReady,
  type ApiClient,
  type TestCluster,
} from "@parley/testing";
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
    processes: ["agent-core", "tool-runner"],
    model: true,
    replicas: { "agent-core": 2 },
    settings,
    env: { "tool-runner": { PARLEY_TOOL_UNUSED: "x", MEMORY_FILE_PATH: join(folder, "graph.jsonl") } },
  });
  client = apiClient(cluster.httpUrls, cluster.token);
  await untilServersReady(client, ["local", "remote", "files", "graph"]);
});
after(() => cleanup[Symbol.asyncDispose]());

/** The tool results in the last request to the model. */
function results(): string {
  const sent: unknown = cluster.strict?.requests.at(-1);
  return JSON.stringify(sent);
}

// design: 002.26
test("uses servers over stdio and HTTP and sends their results to the model", async () => {
  const answer = await client.ask(
    'tool: mcp__local__echo {"message":"by stdio"}\ntool: mcp__remote__get-sum {"a":20,"b":22}\nthen\nsay: both answered',
    "both",
  );
  assert.equal(answer, "both answered");
  assert.match(results(), /Echo: by stdio/);
  assert.match(results(), /sum of 20 and 22 is 42/);
});

test("writes a file through a server and reads it back", async () => {
  const path = join(folder, "note.txt");
  const write = JSON.stringify({ path, content: "kept by the server" });
  await client.ask(
    `tool: mcp__files__write_file ${write}\nthen\ntool: mcp__files__read_text_file ${JSON.stringify({ path })}\nthen\nsay: done`,
    "files",
  );
  assert.equal(await readFile(path, "utf8"), "kept by the server");
  assert.match(results(), /kept by the server/);
});

test("waits for approval, which a person gives over Parley's own MCP server", async () => {
  const entities = [{ name: "Ada", entityType: "person", observations: ["likes engines"] }];
  const message = await client.post(
    `tool: mcp__graph__create_entities ${JSON.stringify({ entities })}\nthen\nsay: remembered`,
    { conversation: "graph" },
  );
  const Pending = z.object({ approvals: z.array(z.object({ id: z.string(), tool: z.string() })) });
  const asked = async () => Pending.parse(await parley("approvals_list", {})).approvals[0];
  const approval = await pollUntil(asked, "the approval");
  assert.equal(approval.tool, "mcp__graph__create_entities");
  const decided = await parley("approval_decide", { id: approval.id, allow: true });
  assert.equal(z.object({ outcome: z.string() }).parse(decided).outcome, "decided");
  const turn = await client.settled(message);
  assert.equal(turn.text, "remembered");
  assert.match(await readFile(join(folder, "graph.jsonl"), "utf8"), /likes engines/);
});

// design: 002.26
test("names an unreachable server in the status and continues without it", async () => {
  const Status = z.object({
    replicas: z.array(z.looseObject({ service: z.string(), details: z.record(z.string(), z.unknown()) })),
  });
  const { replicas } = Status.parse(await (await client.fetch("/api/status")).json());
  const runner = replicas.find(({ service }) => service === "tool-runner");
  assert.match(String(runner?.details["mcp"]), /absent: \w+, 0 tools \(.*program .* not found.*\).*local: ready/);
});

/** Events of a conversation from now on, until one is found; the stream then ends. */
async function untilEvent<T>(conversation: string, find: (event: unknown) => T | undefined): Promise<T> {
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
  untilEvent(conversation, (event) => {
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
  test(`takes a person's next messages as elicitation answers, not as turns (${server})`, async () => {
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

test("ends a turn whose server waits for a person when /stop arrives", async () => {
  const conversation = "stopped";
  const message = await client.post("tool: mcp__local__trigger-elicitation-request {}\nthen\nsay: never", {
    conversation,
  });
  await asked(conversation, /asks you/);
  await command(conversation, "/stop");
  assert.equal((await client.settled(message)).state, "cancelled");
  assert.equal(await client.ask("say: still here", conversation), "still here");
});

test("continues a call with its answer when the leader dies while the question is open", async () => {
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

test("reports an unknown outcome and closes the question when the tool-runner dies", async () => {
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

test("declines an elicitation in a sub-agent's turn, because no person talks with it", async () => {
  const before = cluster.strict?.requests.length ?? 0;
  const task = "tool: mcp__local__trigger-elicitation-request {}\nthen\nsay: the child is done";
  const spawn = JSON.stringify({ prompt: task, profile: "worker" });
  await client.ask(`tool: sessions_spawn ${spawn}\nthen\nsay: done`, "parent");
  const Request = z.object({ messages: z.array(z.unknown()) });
  const told = cluster.strict?.requests.slice(before).map((sent) => Request.parse(sent).messages);
  assert.match(JSON.stringify(told), /declined: no person can answer, sub-agents cannot ask people/);
});

test("shows the model a picture that a server returns", async () => {
  await client.ask("tool: mcp__local__get-tiny-image {}\nthen\nsay: seen", "picture");
  assert.match(results(), /"type":"image","source":\{"type":"base64","media_type":"image\/png"/);
});

test("streams a call's progress while it runs", async () => {
  const conversation = "progress";
  const watched = untilEvent(conversation, (event) => Progress.safeParse(event).data?.progress);
  const input = JSON.stringify({ duration: 0.3, steps: 3 });
  await client.ask(`tool: mcp__remote__trigger-long-running-operation ${input}\nthen\nsay: ready`, conversation);
  assert.deepEqual(await watched, { done: 1, total: 3 });
});

// design: 003.35
test("lists servers' prompts and sends one, with resources, as the person's own message", async () => {
  const conversation = "prompts";
  const listed = await command(conversation, "/mcp prompts local");
  assert.match(listed, /^\/mcp__local__args-prompt <city> \[state\]: A prompt with two arguments/m);
  assert.match(await command(conversation, "/mcp"), /^local: ready, \d+ tools$/m);
  assert.match(await command(conversation, '/mcp__local__args-prompt "New York" NY'), /was sent to the agent/);
  await untilEvent(conversation, (event) => Finished.safeParse(event).data);
  assert.match(results(), /\[prompt \\"args-prompt\\" of the MCP server local\].*What's weather in New York, NY\?/);
  await command(conversation, "/mcp__remote__resource-prompt resourceType=Text resourceId=7");
  let ends = 0;
  await untilEvent(conversation, (event) => (Finished.safeParse(event).success && ++ends === 2 ? true : undefined));
  assert.match(results(), /\[untrusted [0-9a-f]{8}: a resource of the MCP server remote/);
});

test("reports an error without a turn when a prompt is unknown or lacks an argument", async () => {
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

/** One call of Parley's own MCP server, as a client without a library sends it. */
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
