// A turn on a whole cluster that uses MCP servers from npm over both transports, asks a person first where the operator wants it, and is
// answered over Parley's own MCP server.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import { z } from "zod";
import { everything, filesystem, memory } from "../../services/tool-runner/test/mcp/programs.ts";

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;
let folder: string;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function startEverything(): Promise<string> {
  const port = await freePort();
  const child = spawn(process.execPath, [everything, "streamableHttp"], {
    env: { PATH: process.env["PATH"] ?? "", PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  cleanup.add(async () => {
    child.kill("SIGKILL");
  });
  await new Promise<void>((resolve, reject) => {
    child.stderr.on("data", (chunk: Buffer) => (chunk.includes("listening") ? resolve() : undefined));
    child.once("exit", () => reject(new Error("it ended")));
  });
  return `http://127.0.0.1:${port}/mcp`;
}

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
url = "${await startEverything()}"
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

[permissions]
allow = ["mcp__files__*"]
ask = ["mcp__graph__create_entities"]
`;
  cluster = await startTestCluster(cleanup, {
    model: true,
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

test("a server that is not there is named where people look, and stops nobody", async () => {
  const Status = z.object({
    replicas: z.array(z.looseObject({ service: z.string(), details: z.record(z.string(), z.unknown()) })),
  });
  const { replicas } = Status.parse(await (await client.fetch("/api/status")).json());
  const runner = replicas.find(({ service }) => service === "tool-runner");
  assert.match(String(runner?.details["mcp"]), /absent: \w+, 0 tools \(.*not found.*\).*local: ready/);
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
