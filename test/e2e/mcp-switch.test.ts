// MCP servers switched on and off while a cluster with two tool-runners and two gateways runs: by chat command, API and CLI. The
// state survives killed tool-runners, and existing conversations are informed.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import { pollUntil } from "@parley/testing/until";
import { z } from "zod";
import { parley, runParley } from "../../packages/cli/test/support/parley.ts";
import { running } from "../../services/tool-runner/test/support/commands.ts";
import { everything } from "../../services/tool-runner/test/mcp/programs.ts";

const cleanup = new Cleanup();
/** A unique argument, by which the test finds the process among those of the machine. */
const mark = randomUUID();
let cluster: TestCluster;
let client: ApiClient;

before(async () => {
  const settings = `
[session]
policy = "per_conversation"

[tools]
search_above = 0

[mcp.servers.local]
command = "${process.execPath}"
args = ["${everything}", "stdio", "${mark}"]
risk = "low"

[mcp.servers.endless]
command = "sleep"
args = ["600"]
start_timeout_seconds = 600

[mcp.servers.never]
command = "${process.execPath}"
args = ["${everything}", "stdio"]
enabled = false
`;
  cluster = await startTestCluster(cleanup, {
    processes: ["tool-runner"],
    model: true,
    replicas: { "tool-runner": 2, "channel-gateway": 2 },
    settings,
  });
  client = apiClient(cluster.httpUrls, cluster.token);
});
after(() => cleanup[Symbol.asyncDispose]());

const programs = () => running(`${process.execPath} ${everything} stdio ${mark}`).length;

/** Waits for an asynchronous change in the processes. */
const until = (holds: () => Promise<boolean> | boolean): Promise<boolean> =>
  pollUntil(holds, "a change in the processes");

async function command(text: string): Promise<string> {
  const response = await client.fetch("/api/messages", {
    method: "POST",
    body: JSON.stringify({ conversation: "orders", text }),
  });
  assert.equal(response.status, 200);
  return z.object({ text: z.string() }).parse(await response.json()).text;
}

const Request = z.looseObject({ tools: z.array(z.object({ name: z.string() })), messages: z.array(z.unknown()) });
const lastRequest = () => Request.parse(cluster.strict?.requests.at(-1));

/** Whether a new conversation contains the tool. */
async function shown(tool: string): Promise<boolean> {
  await client.ask("say: hello", randomUUID());
  return lastRequest().tools.some(({ name }) => name === tool);
}

const Status = z.object({
  replicas: z.array(z.looseObject({ service: z.string(), details: z.record(z.string(), z.unknown()) })),
});

async function api(path: string, body?: object): Promise<{ status: number; answer: unknown }> {
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await client.fetch(path, init);
  return { status: response.status, answer: await response.json() };
}

/** Waits until both tool-runners report this state of their servers. */
async function everywhere(pattern: RegExp): Promise<void> {
  await until(async () => {
    const { replicas } = Status.parse((await api("/api/status")).answer);
    const runners = replicas.filter(({ service }) => service === "tool-runner");
    return runners.length === 2 && runners.every(({ details }) => pattern.test(String(details["mcp"])));
  });
}

test("reports immediately which server is still starting when /mcp is sent", async () => {
  await everywhere(/local: ready/);
  const begun = performance.now();
  assert.match(await command("/mcp"), /^endless: starting, 0 tools\nlocal: ready, \d+ tools\n/);
  assert.ok(performance.now() - begun < 3_000, "it has waited for the server");
  // Lists of tools wait for a server that is starting.
  assert.match(await command("/mcp off endless"), /endless is off everywhere until \/mcp on endless/);
  assert.match(await command("/mcp"), /^endless: off, switched off by .*\nlocal: ready/);
});

// design: 003.35
test("stops a switched-off server, hides it from new conversations and informs older ones", async () => {
  const echo = 'tool: mcp__local__echo {"message":"anyone there"}\nthen\nsay: done';
  await client.ask(echo, "older");
  assert.match(JSON.stringify(lastRequest().messages), /Echo: anyone there/);
  await until(() => programs() === 2);
  assert.match(await command("/mcp off local"), /local is off everywhere/);
  assert.match(await command("/mcp off local"), /local is already off/);
  await until(() => programs() === 0);
  await until(async () => !(await shown("mcp__local__echo")));
  await client.ask(echo, "older");
  assert.ok(
    lastRequest().tools.some(({ name }) => name === "mcp__local__echo"),
    "the prompt that runs is not edited",
  );
  assert.match(JSON.stringify(lastRequest().messages), /Tool not found: mcp__local__echo/);
});

test("keeps servers switched off or on when tool-runners are killed", async () => {
  for (const index of [1, 2]) await cluster.kill("tool-runner", index, "SIGKILL");
  await until(async () => /^endless: off.*\nlocal: off, switched off by/.test(await command("/mcp")));
  assert.equal(programs(), 0);
  assert.match(await command("/mcp on LOCAL"), /local is on and is starting/);
  await everywhere(/local: ready/);
  assert.equal(programs(), 2);
  await until(() => shown("mcp__local__echo"));
});

// design: 003.35
test("hides only one tool from the agent when this tool is switched off", async () => {
  assert.match(await command("/mcp off local mcp__local__echo"), /echo of local is hidden from the agent/);
  await until(async () => !(await shown("mcp__local__echo")));
  assert.equal(await shown("mcp__local__get-sum"), true);
  assert.match(await command("/mcp tools local"), /^local: ready, \d+ tools, 1 hidden\n- echo \(hidden\)\n- get-/);
  assert.match(await command("/mcp on local echo"), /echo of local is visible again/);
  await until(() => shown("mcp__local__echo"));
});

test("refuses to switch unknown servers and those that the settings disable", async () => {
  assert.match(await command("/mcp off locla"), /no MCP server "locla"\. Did you mean local\?/);
  assert.match(await command("/mcp on never"), /never is disabled in parley\.toml \(enabled = false\)/);
  assert.match(await command("/mcp off local ecco"), /local has no tool "ecco"; did you mean echo\?/);
  assert.match(await command("/mcp restart endless"), /endless is switched off; switch it on/);
  assert.match(await command("/mcp out local"), /Unknown subcommand: \/mcp out\.\nUsage: \/mcp \[tools/);
  assert.equal((await api("/api/mcp/never", { action: "on" })).status, 409);
  assert.equal((await api("/api/mcp/nobody", { action: "on" })).status, 404);
  assert.equal((await api("/api/mcp/local", { action: "restart", tool: "echo" })).status, 400);
});

test("switches by API and CLI, and repeats nothing when a key is sent again", async () => {
  const cli = async (...args: string[]) => {
    const { code, stdout, stderr } = await runParley(cluster.home, ["mcp", ...args]);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  assert.match(await cli("list"), /local +ready +\d+ +0/);
  assert.match(await cli("off", "local", "echo"), /echo of local is hidden\./);
  assert.match(await cli("tools", "local"), /^echo +mcp__local__echo +hidden$/m);
  assert.match(await cli("on", "local", "echo"), /echo of local is shown again\./);
  const order = { method: "POST", body: JSON.stringify({ action: "off" }), headers: { "idempotency-key": mark } };
  assert.equal((await client.fetch("/api/mcp/local", order)).status, 200);
  assert.match(await cli("list"), /local +off +0 +0 +off by owner \(API\) since/);
  assert.match(await cli("on", "local"), /local is on\./);
  assert.equal((await client.fetch("/api/mcp/local", order)).status, 200);
  await everywhere(/local: ready/);
});

// design: 003.35b, 003.42
test("lists and switches servers in `parley run`, with the reason when it refuses", async () => {
  const running = parley(cluster.home, ["run", "--output", "stream-json", "--input-format", "stream-json"]);
  const Response = z.object({
    type: z.literal("control_response"),
    response: z.object({ request_id: z.string(), response: z.unknown().optional(), error: z.string().optional() }),
  });
  const asked = async (id: string, request: object) => {
    running.write(`${JSON.stringify({ type: "control_request", request_id: id, request })}\n`);
    await running.says(new RegExp(`"request_id":"${id}".*\n`));
    const line = running.stdout.split("\n").find((each) => each.includes(`"request_id":"${id}"`)) ?? "";
    return Response.parse(JSON.parse(line)).response;
  };
  const { response } = await asked("s", { subtype: "mcp_status" });
  assert.match(JSON.stringify(response), /"name":"local","status":"connected","state":"ready"/);
  const toggle = { subtype: "mcp_toggle", server_name: "local" };
  assert.deepEqual((await asked("off", { ...toggle, enabled: false })).response, {
    server_name: "local",
    changed: true,
  });
  assert.match(await command("/mcp"), /\nlocal: off, switched off by owner \(API\)/);
  assert.match((await asked("again", { subtype: "mcp_reconnect", server_name: "local" })).error ?? "", /switched off/);
  assert.match((await asked("set", { subtype: "mcp_set_servers", servers: {} })).error ?? "", /parley\.toml/);
  await asked("on", { ...toggle, enabled: true });
  await running.endInput().outcome();
  await everywhere(/local: ready/);
});

test("restarts a healthy server on every tool-runner when /mcp restart is sent", async () => {
  const ready = () => cluster.lines.filter((line) => line.includes("MCP server ready"));
  const before = ready().length;
  assert.match(await command("/mcp restart local"), /local is restarting on every tool-runner/);
  await until(
    () =>
      new Set(
        ready()
          .slice(before)
          .map((line) => line.split(" ")[0]),
      ).size === 2,
  );
  assert.equal(programs(), 2);
});
