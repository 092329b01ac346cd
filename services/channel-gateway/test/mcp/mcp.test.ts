// Parley as an MCP server: a real client with both protocol revisions on a real gateway and store, and the protocol's conformance suite.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createServer, request as send } from "node:http";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { after, before, describe, test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { temporaryFolder, Cleanup } from "@parley/testing";
import { z } from "zod";
import { parseSettings } from "@parley/chassis";
import { mcpAuthorize, sealedCodeContext, type InputOf } from "@parley/contracts";
import { createSealingKeys, open } from "@parley/kit";
import { startGatewayStack, token, type GatewayStack, type Replica } from "../support/stack.ts";

const cleanup = new Cleanup();
let gateway: GatewayStack;
let replica: Replica;

before(async () => {
  gateway = await startGatewayStack();
  cleanup.add(async () => gateway[Symbol.asyncDispose]());
  replica = await gateway.gateway();
});
after(() => cleanup[Symbol.asyncDispose]());

type Mode = "legacy" | { pin: string };
const eras: Record<string, Mode> = { "2025-11-25": "legacy", "2026-07-28": { pin: "2026-07-28" } };

async function connected(mode: Mode = "legacy"): Promise<Client> {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${replica.url}/mcp`), { requestInit }));
  cleanup.add(() => client.close());
  return client;
}

const Called = z.object({
  content: z.array(z.object({ text: z.string() })),
  structuredContent: z.looseObject({}).optional(),
  isError: z.boolean().optional(),
});

async function call(client: Client, name: string, args: Record<string, unknown>) {
  const { content, structuredContent, isError } = Called.parse(await client.callTool({ name, arguments: args }));
  return {
    text: content.map((part) => part.text).join("\n"),
    value: structuredContent ?? {},
    isError: isError === true,
  };
}

const Sent = z.object({ session: z.string(), message: z.string(), duplicate: z.boolean() });
const Read = z.object({
  messages: z.array(z.object({ role: z.string(), text: z.string() })),
  next: z.number(),
  more: z.boolean(),
});

for (const [revision, mode] of Object.entries(eras)) {
  describe(`a client of ${revision}`, () => {
    test("lists six tools, each with a schema", async () => {
      const client = await connected(mode);
      assert.equal(client.getNegotiatedProtocolVersion(), revision);
      const { tools } = await client.listTools();
      assert.deepEqual(tools.map(({ name }) => name).toSorted(), [
        "approval_decide",
        "approval_get",
        "approvals_list",
        "list_sessions",
        "read_session",
        "send_message",
      ]);
      assert.ok(tools.every(({ inputSchema }) => inputSchema.type === "object"));
    });

    test("sends a message, gets the answer and reads the session from a position", async () => {
      const client = await connected(mode);
      const said = await call(client, "send_message", { text: `hello from ${revision}`, conversation: revision });
      assert.equal(said.value["text"], `You said: hello from ${revision}`);
      const { session } = Sent.parse(said.value);
      const listed = await call(client, "list_sessions", {});
      assert.match(listed.text, new RegExp(session));
      const read = Read.parse((await call(client, "read_session", { session })).value);
      const last = read.messages.slice(-2).map(({ role, text }) => [role, text.split("\n").at(-1)]);
      assert.deepEqual(last, [
        ["user", `hello from ${revision}`],
        ["assistant", `You said: hello from ${revision}`],
      ]);
      const rest = Read.parse((await call(client, "read_session", { session, after: read.next })).value);
      assert.deepEqual(rest.messages, []);
    });
  });
}

describe("send_message", () => {
  test("stores a message without waiting and deduplicates it by key", async () => {
    const client = await connected();
    const args = { text: "later", conversation: "keyed", wait: false, key: "k1" };
    const first = Sent.parse((await call(client, "send_message", args)).value);
    const again = Sent.parse((await call(client, "send_message", args)).value);
    assert.deepEqual([again.message, again.duplicate], [first.message, true]);
    const other = await call(client, "send_message", { ...args, text: "something else" });
    assert.ok(other.isError);
    assert.match(other.text, /^idempotency_key_reused: /);
  });

  test("reports a running turn when the answer takes too long", async () => {
    const answered = Promise.withResolvers<{ deltas: string[] }>();
    const { script } = gateway.agent;
    gateway.agent.script = () => answered.promise;
    const client = await connected();
    const { value } = await call(client, "send_message", { text: "slow", conversation: "slow", wait_seconds: 1 });
    assert.equal(value["state"], "running");
    answered.resolve({ deltas: ["at last"] });
    gateway.agent.script = script;
  });

  test("executes a command immediately", async () => {
    const { value } = await call(await connected(), "send_message", { text: "/help" });
    assert.equal(value["command"], "/help");
  });
});

describe("errors", () => {
  test("names invalid arguments and unknown sessions and approvals", async () => {
    const client = await connected();
    const wrong = await call(client, "send_message", { words: "hello" });
    assert.ok(wrong.isError);
    assert.match(wrong.text, /text/);
    assert.match((await call(client, "read_session", { session: "nobody's" })).text, /^not_found: /);
    assert.match((await call(client, "approval_decide", { id: "ABCD", allow: true })).text, /^not_found: .*ABCD/);
    assert.deepEqual((await call(client, "approvals_list", {})).value, { approvals: [] });
  });

  test("refuses invalid tokens, foreign origins and other methods", async () => {
    const body = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    const status = async (headers: Record<string, string>) =>
      (await replica.call("/mcp", { body, headers: { accept: "application/json, text/event-stream", ...headers } }))
        .status;
    assert.equal(await status({}), 200);
    assert.equal(await status({ authorization: "Bearer wrong-token-0123456789" }), 401);
    assert.equal(await status({ origin: "https://evil.example" }), 403);
    assert.equal((await replica.call("/mcp")).status, 405);
    assert.equal((await replica.call("/mcp", { method: "DELETE" })).status, 405);
  });

  test("shows an error page for an OAuth callback when no tool-runner responds", async () => {
    const response = await fetch(`${replica.url}/oauth/mcp/somewhere/callback?state=s&code=c`);
    assert.equal(response.status, 503);
    assert.match(await response.text(), /The authorization cannot be completed now/);
    assert.equal((await fetch(`${replica.url}/oauth/mcp/somewhere/callback?code=c`)).status, 400);
  });

  test("sends the code of an OAuth callback so that no listener on the bus can read it", async () => {
    const keys = createSealingKeys();
    const link = { server: "somewhere", state: `random.${keys.publicKey}` };
    const heard: InputOf<typeof mcpAuthorize>[] = [];
    // Any holder of a tool-runner's credential can join the queue group.
    const bus = await gateway.stack.bus("tool-runner");
    const served = bus.serve(mcpAuthorize, async (input) => {
      heard.push(input);
      return { outcome: "done" as const, message: "The agent may now use somewhere." };
    });
    await bus.verifyPermissions();
    const callback = `${replica.url}/oauth/mcp/somewhere/callback?code=the-authorization-code&state=`;
    try {
      assert.equal((await fetch(`${callback}${link.state}`)).status, 200);
      // A link of a version whose links had no key.
      await fetch(`${callback}random`);
    } finally {
      served.close();
    }
    assert.doesNotMatch(JSON.stringify(heard), /the-authorization-code/);
    assert.equal(open(heard[0]?.sealedCode ?? "", keys, sealedCodeContext(link)), "the-authorization-code");
    assert.equal(heard[1]?.sealedCode, null);
  });

  test("serves a client metadata document only for OAuth servers without a client id", async () => {
    const settings = parseSettings(
      `[mcp]
public_url = "https://parley.example/"
[mcp.servers.calendar]
url = "https://calendar.example/mcp"
oauth = { scopes = ["calendar.read"] }
[mcp.servers.known]
url = "https://known.example/mcp"
oauth = { client_id = "we-are-known" }
[mcp.servers.plain]
url = "https://plain.example/mcp"
`,
      "test",
    );
    const { url } = await gateway.gateway({ config: { settings } });
    const document = (server: string, from = url) => fetch(`${from}/oauth/mcp/${server}/client.json`);
    const address = "https://parley.example/oauth/mcp/calendar";
    assert.deepEqual(await (await document("calendar")).json(), {
      client_id: `${address}/client.json`,
      client_name: "Parley",
      redirect_uris: [`${address}/callback`],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
      scope: "calendar.read",
    });
    for (const server of ["known", "plain", "nobody", "constructor"])
      assert.equal((await document(server)).status, 404);
    assert.equal((await document("calendar", replica.url)).status, 404, "there is no such server");
  });
});

describe("the protocol's conformance suite", () => {
  const suite = fileURLToPath(import.meta.resolve("@modelcontextprotocol/conformance/dist/index.js"));

  /** A proxy that adds our token, because the suite does not support tokens. */
  async function withToken(): Promise<string> {
    const proxy = createServer((from, to) => {
      const target = new URL(from.url ?? "/", replica.url);
      const headers = { ...from.headers, authorization: `Bearer ${token}` };
      const onward = send(target, { method: from.method, headers }, (answer) => {
        to.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(to);
      });
      onward.on("error", () => to.destroy());
      from.pipe(onward);
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    cleanup.add(async () => proxy.closeAllConnections());
    cleanup.add(() => new Promise<void>((resolve) => proxy.close(() => resolve())));
    const address = proxy.address();
    assert.ok(typeof address === "object" && address !== null);
    return `http://127.0.0.1:${address.port}/mcp`;
  }

  for (const scenario of ["server-initialize", "ping", "tools-list", "dns-rebinding-protection"]) {
    test(`passes ${scenario}`, async () => {
      const args = [suite, "server", "--url", await withToken(), "--scenario", scenario];
      const cwd = await temporaryFolder(cleanup);
      const { stdout } = await promisify(execFile)(process.execPath, args, { cwd });
      assert.match(stdout, /Passed: [1-9]\d*\/\d+, 0 failed/);
    });
  }
});
