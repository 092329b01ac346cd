// MCP servers in the program of the Claude Agent SDK: its tools, called by the model in a session of the cluster.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, test } from "node:test";
import { createSdkMcpServer, tool, type Options } from "@anthropic-ai/claude-agent-sdk";
import { apiClient, Cleanup, pollUntil, startTestCluster, type TestCluster } from "@parley/testing";
import { z } from "zod";
import { everything, startEverything } from "../../../services/tool-runner/test/mcp/programs.ts";
import { Inputs, sdkClient, toolResults, userMessage, type SdkClient } from "./support/client.ts";

const cleanup = new Cleanup();
let cluster: TestCluster;
let sdk: SdkClient;

before(async () => {
  const settings = '[mcp.servers.absent]\ncommand = "absent"\nenabled = false\n';
  cluster = await startTestCluster(cleanup, { processes: [], settings });
  sdk = sdkClient(cluster);
});
after(() => cleanup[Symbol.asyncDispose]());

const then = "\nthen\nsay: over";
const addOf = (a: unknown, b = 2) => `tool: mcp__shop__add ${JSON.stringify({ a, b })}`;
const Messages = z.object({
  messages: z.array(z.object({ parts: z.array(z.looseObject({ type: z.string(), content: z.unknown().optional() })) })),
});

/** The first result of a tool in the log of a session; undefined: there is none yet. */
async function storedResult(sessionId: string): Promise<string | undefined> {
  const response = await apiClient(cluster.httpUrls, cluster.token).fetch(`/api/sessions/${sessionId}/messages`);
  const parts = Messages.parse(await response.json()).messages.flatMap((message) => message.parts);
  const found = parts.find(({ type }) => type === "tool_result");
  return found === undefined ? undefined : String(found.content);
}

/** A server with one tool; `calls` gets the arguments of each call. */
function shop(calls: unknown[] = [], work: () => Promise<void> = async () => undefined) {
  const add = tool("add", "Adds two numbers", { a: z.number(), b: z.number() }, async (input) => {
    calls.push(input);
    await work();
    return { content: [{ type: "text", text: `the sum is ${input.a + input.b}` }] };
  });
  return createSdkMcpServer({ name: "shop", tools: [add] });
}

/** A server whose tool never returns; `started` resolves when it is called. */
function endless(calls: unknown[] = []) {
  const { promise: started, resolve } = Promise.withResolvers<void>();
  const server = shop(calls, () => {
    resolve();
    return new Promise(() => undefined);
  });
  return { server, started };
}

const allowed: Options = { allowedTools: ["mcp__shop__add"] };

// design: 003.35, 003.35b
test("runs a tool of the program when the model calls it", async () => {
  const calls: unknown[] = [];
  const run = await sdk.run(`${addOf(1)}\nthen\n${addOf(5)}${then}`, {
    ...allowed,
    mcpServers: { shop: shop(calls) },
  });
  assert.deepEqual(toolResults(run), ["the sum is 3", "the sum is 7"]);
  assert.deepEqual(calls, [
    { a: 1, b: 2 },
    { a: 5, b: 2 },
  ]);
  const [init] = run.system("init");
  assert.ok(init?.subtype === "init");
  assert.ok(init.tools.includes("mcp__shop__add"));
  assert.deepEqual(init.mcp_servers, [{ name: "shop", status: "connected" }]);
  assert.equal(run.result.subtype, "success");
});

test("asks the callback about a tool of the program, and calls it with the changed arguments", async () => {
  const asked: unknown[] = [];
  const calls: unknown[] = [];
  const run = await sdk.run(`${addOf(1)}${then}`, {
    mcpServers: { shop: shop(calls) },
    canUseTool: async (name, input) => {
      asked.push([name, input]);
      return { behavior: "allow", updatedInput: { a: 40, b: 2 } };
    },
  });
  assert.deepEqual(asked, [["mcp__shop__add", { a: 1, b: 2 }]]);
  assert.deepEqual(toolResults(run), ["the sum is 42"]);
  const denied = await sdk.run(`${addOf(1)}${then}`, { mcpServers: { shop: shop(calls) } });
  assert.match(toolResults(denied)[0] ?? "", /Not run/);
  assert.deepEqual(calls, [{ a: 40, b: 2 }]);
});

test("calls the hooks of the program before and after its own tool", async () => {
  const seen: unknown[] = [];
  const record = async (input: { hook_event_name: string; tool_name?: string }) => {
    seen.push([input.hook_event_name, input.tool_name]);
    return {};
  };
  await sdk.run(`${addOf(1)}${then}`, {
    ...allowed,
    mcpServers: { shop: shop() },
    hooks: {
      PreToolUse: [{ matcher: "mcp__shop__.*", hooks: [record] }],
      PostToolUse: [{ matcher: "mcp__.*", hooks: [record] }],
    },
  });
  assert.deepEqual(seen, [
    ["PreToolUse", "mcp__shop__add"],
    ["PostToolUse", "mcp__shop__add"],
  ]);
});

test("returns the tool's error and wrong arguments to the model", async () => {
  const failing = shop([], () => Promise.reject(new Error("the shop is closed")));
  const run = await sdk.run(`${addOf(1)}\nthen\n${addOf("many")}${then}`, {
    ...allowed,
    mcpServers: { shop: failing },
  });
  const [failed = "", wrong = ""] = toolResults(run);
  assert.match(failed, /the shop is closed/);
  assert.match(wrong, /number/);
  assert.equal(run.result.subtype, "success");
});

test("interrupts a turn while a tool of the program runs", async () => {
  const inputs = new Inputs(`${addOf(1)}${then}`);
  const { server, started } = endless();
  const query = sdk.start(inputs, { ...allowed, mcpServers: { shop: server } });
  void started.then(() => query.interrupt());
  for await (const message of query) {
    if (message.type !== "result") continue;
    assert.equal(message.subtype, "error_during_execution");
    inputs.end();
  }
});

test("settles a call with the reason when the program ends during it", async () => {
  const abortController = new AbortController();
  const { server, started } = endless();
  void started.then(() => abortController.abort());
  const run = await sdk.run(`${addOf(1)}${then}`, { ...allowed, abortController, mcpServers: { shop: server } });
  const [init] = run.system("init");
  const result = await pollUntil(() => storedResult(init?.session_id ?? ""), "the result of the call");
  assert.equal(result, "No result: the program closed its input. Whether the call took effect is unknown.");
});

test("never repeats a call whose executable was killed, and says that its outcome is unknown", async () => {
  const calls: unknown[] = [];
  const { server, started } = endless(calls);
  const run = await sdk.run(`${addOf(1)}${then}`, {
    ...allowed,
    mcpServers: { shop: server },
    spawnClaudeCodeProcess: ({ command, args, cwd, env }) => {
      // A group of its own: the executable starts another process.
      const child = spawn(command, args, { cwd, env, stdio: ["pipe", "pipe", "ignore"], detached: true });
      void started.then(() => child.pid === undefined || process.kill(-child.pid, "SIGKILL"));
      return child;
    },
  });
  const [init] = run.system("init");
  const sessionId = init?.session_id ?? "";
  const result = await pollUntil(() => storedResult(sessionId), "the result of the lost call");
  assert.match(result, /^Outcome unknown: the program that runs mcp__shop__add was lost during the call/);
  // The next process of the program continues the session with the same tools.
  const again = await sdk.run(`${addOf(3)}${then}`, {
    ...allowed,
    resume: sessionId,
    mcpServers: { shop: shop(calls) },
  });
  assert.deepEqual(toolResults(again), ["the sum is 5"]);
  assert.deepEqual(calls, [
    { a: 1, b: 2 },
    { a: 3, b: 2 },
  ]);
});

test("shows the model the tools that a continued run defines", async () => {
  const first = await sdk.run("say: hello");
  const run = await sdk.run(`${addOf(1)}${then}`, {
    ...allowed,
    resume: first.result.session_id,
    mcpServers: { shop: shop() },
  });
  assert.deepEqual(toolResults(run), ["the sum is 3"]);
  const without = await sdk.run(`${addOf(1)}${then}`, { resume: first.result.session_id });
  assert.match(toolResults(without)[0] ?? "", /Tool not found: mcp__shop__add/);
});

test("refuses names that a tool cannot have", async () => {
  const odd = createSdkMcpServer({ name: "my shop", tools: [tool("add", "Adds", {}, async () => ({ content: [] }))] });
  const run = await sdk.run("say: never", { mcpServers: { "my shop": odd } });
  assert.match(run.failure?.message ?? "", /"mcp__my shop__add" is not a name that a tool can have/);
});

test("reaches the servers that the program names by a command or an address", async () => {
  const args = [everything, "stdio"];
  const mcpServers: Options["mcpServers"] = {
    local: { command: process.execPath, args, env: { SHOP: "open" } },
    remote: { type: "http", url: await startEverything(cleanup), headers: { "x-shop": "open" } },
    older: { type: "sse", url: await startEverything(cleanup, "sse") },
  };
  const names = Object.keys(mcpServers);
  const calls = names.map((name) => `tool: mcp__${name}__echo ${JSON.stringify({ message: name })}`);
  const script = [...calls, "tool: mcp__local__get-env {}"].join("\nthen\n");
  const run = await sdk.run(`${script}${then}`, { mcpServers, allowedTools: names.map((name) => `mcp__${name}`) });
  const [local, remote, older, env = ""] = toolResults(run);
  assert.deepEqual([local, remote, older], ["Echo: local", "Echo: remote", "Echo: older"]);
  assert.match(env, /"SHOP": "open"/);
  const [init] = run.system("init");
  assert.ok(init?.subtype === "init");
  for (const name of names) assert.ok(init.tools.includes(`mcp__${name}__echo`));
});

test("takes such servers in the first request too", async () => {
  const mcpServers = { local: { command: process.execPath, args: [everything, "stdio"] } };
  const options: Options = { mcpServers, mcpServersDelivery: "initialize", allowedTools: ["mcp__local"] };
  const run = await sdk.run(`tool: mcp__local__echo {"message":"hi"}${then}`, options);
  assert.deepEqual(toolResults(run), ["Echo: hi"]);
});

test("names a server that cannot be started, or whose settings cannot be honoured", async () => {
  const failure = async (config: object) =>
    (await sdk.run("say: never", { mcpServers: { broken: config } } as Options)).failure?.message ?? "";
  assert.match(await failure({ command: "/nonexistent/server" }), /"broken" cannot be used/);
  assert.match(await failure({ command: "server", tools: [] }), /"broken" is not a server of type stdio/);
});

test("denies the cluster's MCP servers with strictMcpConfig, also those that are not connected", async () => {
  const rules: unknown[] = [];
  const read = Promise.withResolvers<void>();
  // The run removes its rules when its input has ended.
  const prompt = async function* () {
    yield userMessage("say: hello");
    await read.promise;
  };
  await sdk.run(prompt(), { strictMcpConfig: true }, async (message) => {
    if (message.type !== "system" || message.subtype !== "init") return;
    const response = await apiClient(cluster.httpUrls, cluster.token).fetch(`/api/sessions/${message.session_id}`);
    const Deny = z.object({ session: z.object({ overrides: z.object({ deny: z.array(z.string()) }) }) });
    rules.push(...Deny.parse(await response.json()).session.overrides.deny);
    read.resolve();
  });
  assert.deepEqual(rules, ["mcp__absent__*"]);
});
