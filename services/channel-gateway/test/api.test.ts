// The native API and its access checks, on a real store.
import { pollUntil } from "@parley/testing/until";
import { ownerAccess } from "../src/http/api-access.ts";
import assert from "node:assert/strict";
import { healthReports, operations, type OperationDefinition } from "@parley/contracts";
import { readdirSync, readFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { ConfigError } from "@parley/chassis";
import { nameUuid } from "@parley/kit";
import { ownerCaller } from "../src/http/owner-input.ts";
import { OperationCall, type OperationDeps } from "../src/operations/operation.ts";
import { startGatewayStack, token, type GatewayStack, type Replica } from "./support/stack.ts";

const routes = new URL("../src/http/", import.meta.url);

let stack: GatewayStack;
let gateway: Replica;

before(async () => {
  stack = await startGatewayStack();
  gateway = await stack.gateway({
    http: { allowedHosts: ["parley.example.org"], allowedOrigins: ["https://console.example.org"] },
  });
});
after(() => stack[Symbol.asyncDispose]());

interface Refusal {
  error: { code: string; message: string };
}

async function refusal(response: Response): Promise<{ status: number; code: string; message: string }> {
  const { error } = (await response.json()) as Refusal;
  return { status: response.status, ...error };
}

/** A request with headers that `fetch` does not allow. */
async function raw(headers: Record<string, string>, path = "/api/sessions"): Promise<{ status: number; body: string }> {
  const call = request(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${token}`, ...headers } });
  call.end();
  const [response] = (await once(call, "response")) as [IncomingMessage];
  let body = "";
  for await (const text of response.setEncoding("utf8")) body += text as string;
  return { status: response.statusCode ?? 0, body };
}

test("accepts a message with 202 and returns its turn and answer later", async () => {
  const response = await gateway.call("/api/messages", { body: { text: "hello" } });
  assert.equal(response.status, 202);
  const { messageId, sessionId, duplicate } = (await response.json()) as Record<string, string>;
  assert.equal(duplicate, false);
  const message = await pollUntil(async () => {
    const found = await gateway.json<{ state: string; turn: { turnId: string; text: string } | null }>(
      `/api/messages/${messageId}`,
    );
    return found.state === "done" && found;
  }, "the answer");
  assert.equal(message.turn?.text, "You said: hello");
  const turnId = message.turn?.turnId;
  const { turn } = await gateway.json<{ turn: { state: string; sessionId: string } }>(`/api/turns/${turnId ?? ""}`);
  assert.deepEqual([turn.state, turn.sessionId], ["done", sessionId]);
  const { sessions } = await gateway.json<{ sessions: { key: string }[] }>("/api/sessions");
  assert.deepEqual(
    sessions.map(({ key }) => key),
    ["main"],
  );
  const { messages } = await gateway.json<{ messages: { role: string }[] }>("/api/sessions/main/messages?after=0");
  assert.deepEqual(
    messages.map(({ role }) => role),
    ["user", "assistant"],
  );
});

test("treats a repeated Idempotency-Key as the same message within one conversation", async () => {
  const put = async (conversation: string) =>
    (await (
      await gateway.call("/api/messages", {
        body: { text: "again", conversation },
        headers: { "idempotency-key": "key-1" },
      })
    ).json()) as { messageId: string; duplicate: boolean };
  const first = await put("a");
  const second = await put("a");
  const other = await put("b");
  assert.equal(second.messageId, first.messageId);
  assert.deepEqual([first.duplicate, second.duplicate, other.duplicate], [false, true, false]);
});

test("refuses an Idempotency-Key that is reused with a different text", async () => {
  const put = (text: string) =>
    gateway.call("/api/messages", { body: { text, conversation: "c" }, headers: { "idempotency-key": "key-2" } });
  const { messageId } = (await (await put("first")).json()) as { messageId: string };
  const { status, code } = await refusal(await put("second"));
  assert.deepEqual([status, code], [409, "idempotency_key_reused"]);
  const again = (await (await put("first")).json()) as { messageId: string; duplicate: boolean };
  assert.deepEqual([again.messageId, again.duplicate], [messageId, true]);
  assert.ok(!stack.agent.heard.includes("second"));
});

test("runs a job once per Idempotency-Key, whether its path has the name or the id", async () => {
  const body = { schedule: "every 1h", prompt: "say: run", name: "by-key", target: "own" };
  const { job } = (await (await gateway.call("/api/schedules", { body })).json()) as { job: { id: string } };
  const run = async (path: string, key: string) => {
    const headers = { "idempotency-key": key };
    const response = await gateway.call(`/api/schedules/${path}`, { body: {}, headers });
    assert.equal(response.status, 200);
    return ((await response.json()) as { messageId: string }).messageId;
  };
  const first = await run("by-key/run", "run-1");
  assert.deepEqual([await run(`${job.id}/run`, "run-1"), await run("by-key/run?x=1", "run-1")], [first, first]);
  assert.notEqual(await run("by-key/run", "run-2"), first);
});

// A retry across an upgrade is the same operation only while these ids stay the same.
test("derives operation ids from the key alone, and from the path where only it names the target", () => {
  const deps = {} as OperationDeps;
  const { speaker, by } = ownerCaller(ownerAccess, "API", "http:POST /api/sessions/a/rewind:key", "key");
  const call = new OperationCall(deps, speaker, by);
  assert.equal(call.operationId("schedule:run:job"), nameUuid("schedule:run:job:key"));
  assert.equal(call.operationId("send"), "cedeb8ef-50d0-825f-acba-73710def5646");
  assert.equal(call.requestId("rewind"), "ba598b70-90d7-83f6-81d4-66f5410ecebc");
  const typed = new OperationCall(deps, { ...ownerCaller(ownerAccess, "API", "telegram:1").speaker }, by);
  assert.equal(typed.operationId("send"), nameUuid("send:telegram:1"));
});

test("names invalid input and stays available", async () => {
  const post = (body: unknown, headers = {}) => gateway.call("/api/messages", { body, headers });
  assert.deepEqual(await refusal(await post({ text: "x", colour: "red" })), {
    status: 400,
    code: "unknown_field",
    message: 'unknown field "colour"',
  });
  assert.equal((await refusal(await post("{broken"))).code, "invalid_json");
  assert.match((await refusal(await post({ text: 7 }))).message, /text: .*string/);
  assert.match((await refusal(await post({}))).message, /text/);
  assert.equal((await refusal(await post("x=1", { "content-type": "application/x-www-form-urlencoded" }))).status, 415);
  assert.equal((await refusal(await post({ text: "x".repeat(300 * 1024) }))).code, "message_too_large");
  assert.equal((await refusal(await post({ text: "x".repeat(1024 * 1024) }))).code, "body_too_large");
  assert.match(
    (await refusal(await post({ text: "x" }, { "idempotency-key": "k".repeat(300) }))).message,
    /Idempotency/,
  );
  assert.equal((await refusal(await gateway.call("/api/turns/nope"))).status, 400);
  assert.equal((await refusal(await gateway.call("/api/turns/00000000-0000-4000-8000-000000000000"))).status, 404);
  assert.equal((await refusal(await gateway.call("/api/sessions/nobody"))).status, 404);
  assert.equal((await refusal(await gateway.call("/api/sessions/main/messages?after=x"))).status, 400);
  assert.equal((await refusal(await gateway.call("/api/nothing"))).code, "no_such_route");
  assert.equal((await refusal(await gateway.call("/api/messages"))).status, 404);
  assert.equal((await refusal(await gateway.call("/api/ws"))).status, 426);
  assert.equal((await refusal(await gateway.call("/api/events", { headers: { "last-event-id": "x" } }))).status, 400);
  assert.equal((await post({ text: "fine" })).status, 202);
});

test("handles an HTTP/2 upgrade request as a plain request, and HEAD opens no stream", async () => {
  const { port } = new URL(gateway.url);
  const body = JSON.stringify({ text: "over h2c" });
  const socket = connect(Number(port), "127.0.0.1");
  socket.write(
    `POST /api/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n` +
      `Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  const [answer] = (await once(socket, "data")) as [Buffer];
  assert.match(answer.toString(), /^HTTP\/1\.1 202/);
  socket.destroy();
  assert.equal((await gateway.call("/api/events", { method: "HEAD" })).status, 404);
});

test("responds 400 to bytes that are not HTTP", async () => {
  const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
  socket.write("\u0000\u0001 nonsense\r\n\r\n");
  const [answer] = (await once(socket, "data")) as [Buffer];
  assert.match(answer.toString(), /^HTTP\/1\.1 400/);
  socket.destroy();
  assert.equal((await gateway.call("/api/sessions")).status, 200);
});

test("responds 400 to names with a NUL character", async () => {
  const message = { text: "hello", conversation: "a\0b" };
  const completion = { model: "parley", user: "a\0b", messages: [{ role: "user", content: "hello" }] };
  const answers = await Promise.all([
    gateway.call("/api/sessions/a%00b"),
    gateway.call("/api/sessions?title=a%00b"),
    gateway.call("/api/messages", { body: message }),
    gateway.call("/v1/chat/completions", { body: completion }),
  ]);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [400, 400, 400, 400],
  );
});

// design: 001.26
test("serves only open routes without a valid token", async () => {
  for (const authorization of ["", "Bearer wrong", `Basic ${token}`, `Bearer ${token}x`, token]) {
    const response = await gateway.call("/api/sessions", { headers: { authorization } });
    assert.equal(response.status, 401, authorization);
    assert.equal(response.headers.get("www-authenticate"), "Bearer");
  }
  const inQuery = await fetch(`${gateway.url}/api/sessions?token=${token}`);
  assert.equal(inQuery.status, 401);
  const openai = await fetch(`${gateway.url}/v1/models`);
  assert.equal(((await openai.json()) as { error: { type: string } }).error.type, "authentication_error");
  assert.equal((await fetch(`${gateway.url}/openapi.json`)).status, 200);
});

test("refuses foreign Host and Origin headers even with a valid token", async () => {
  assert.equal((await raw({ host: "evil.example" })).status, 403);
  assert.equal((await raw({ host: "evil.example" }, "/openapi.json")).status, 403);
  assert.equal((await raw({ origin: "https://evil.example" })).status, 403);
  assert.equal((await raw({ origin: "null" })).status, 403);
  const port = new URL(gateway.url).port;
  for (const host of [
    `localhost:${port}`,
    "127.0.0.1",
    `[::1]:${port}`,
    "parley.example.org",
    "PARLEY.example.org:443",
  ]) {
    assert.equal((await raw({ host })).status, 200, host);
  }
  assert.equal((await raw({ host: `localhost:${port}`, origin: `http://localhost:${port}` })).status, 200);
  assert.equal((await raw({ host: `localhost:${port}`, origin: "http://localhost:1" })).status, 403);
  assert.equal((await raw({ origin: "https://console.example.org" })).status, 200);
});

test("answers CORS preflight requests of listed origins", async () => {
  const ask = (origin: string) =>
    fetch(`${gateway.url}/api/messages`, {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "POST" },
    });
  const allowed = await ask("https://console.example.org");
  assert.equal(allowed.status, 204);
  assert.equal(allowed.headers.get("access-control-allow-origin"), "https://console.example.org");
  assert.equal((await ask("https://evil.example")).status, 403);
});

test("lets a page of a listed origin send the headers of OpenAI's client, and read whether to retry", async () => {
  const origin = "https://console.example.org";
  const sent = "authorization,content-type,x-stainless-lang,x-stainless-retry-count,mcp-protocol-version";
  const preflight = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "OPTIONS",
    headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": sent },
  });
  const allowed = preflight.headers.get("access-control-allow-headers")?.split(/, */);
  assert.deepEqual(allowed, sent.split(","));
  const answer = await gateway.call("/v1/models", { headers: { origin } });
  const readable = answer.headers.get("access-control-expose-headers")?.split(/, */) ?? [];
  for (const name of ["x-should-retry", "retry-after", "x-request-id"]) assert.ok(readable.includes(name), name);
});

test("limits the rate of invalid tokens without affecting a valid one", async () => {
  const strict = await stack.gateway();
  const guess = () => strict.call("/api/sessions", { headers: { authorization: "Bearer guess" } });
  const statuses = await Promise.all(Array.from({ length: 200 }, async () => (await guess()).status));
  assert.ok(statuses.includes(401));
  assert.ok(statuses.includes(429));
  const limited = await guess();
  assert.equal((await refusal(limited)).code, "rate_limited");
  assert.equal((await strict.call("/api/sessions")).status, 200);
});

test("limits the rate of a token when a limit is configured", async () => {
  const slow = await stack.gateway({ http: { ratePerMinute: 5 } });
  const statuses: number[] = [];
  for (let index = 0; index < 7; index++) statuses.push((await slow.call("/api/sessions")).status);
  assert.deepEqual(statuses, [200, 200, 200, 200, 200, 429, 429]);
});

test("documents every served route in /openapi.json", async () => {
  const document = await gateway.json<{ openapi: string; paths: Record<string, object> }>("/openapi.json");
  assert.equal(document.openapi, "3.1.0");
  const files = readdirSync(routes, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const served = files.flatMap((file) =>
    [...readFileSync(new URL(file, routes), "utf8").matchAll(/\burl: "(\/[^"]+)"/g)].map(([, url = ""]) => url),
  );
  assert.ok(served.includes("/api/messages"));
  const defined = Object.values<OperationDefinition>(operations).flatMap(({ http }) => http?.path ?? []);
  const written = new Set([...served, ...defined].map((url) => url.replaceAll(/:(\w+)/g, "{$1}")));
  assert.deepEqual(Object.keys(document.paths).sort(), [...written].sort());
});

test("gives a service more time in the status when none of its replicas has responded", async () => {
  const bus = await stack.stack.bus("tool-runner");
  const second = Promise.withResolvers<void>();
  let requests = 0;
  const report = { service: "tool-runner", replica: "slow", pid: 1, role: "active", epoch: null, ready: true } as const;
  const served = bus.serve(healthReports["tool-runner"], async () => {
    requests += 1;
    if (requests === 2) second.resolve();
    await second.promise;
    return { ...report, uptimeSeconds: 1, rssMib: 1, version: "1", details: {} };
  });
  await bus.flush();
  const { replicas } = await gateway
    .json<{ replicas: { service: string; replica: string }[] }>("/api/status")
    .finally(() => {
      served.close();
      second.resolve();
    });
  assert.deepEqual(
    replicas.filter(({ service }) => service === "tool-runner").map(({ replica }) => replica),
    ["slow"],
  );
});

test("lists every responding replica in the status", async () => {
  // On a busy machine a replica may respond too late.
  await pollUntil(async () => {
    const { replicas, model } = await gateway.json<{
      replicas: { service: string; details: Record<string, unknown> }[];
      model: { model: string } | null;
    }>("/api/status");
    const services = new Set(replicas.map(({ service }) => service));
    return model?.model === "test-1" && services.has("store") && services.has("channel-gateway");
  }, "the model, the store and the gateway");
});

test("reports a port in use with the setting to change", async () => {
  const port = Number(new URL(gateway.url).port);
  await assert.rejects(stack.gateway({ http: { port } }), (error: unknown) => {
    assert.ok(error instanceof ConfigError);
    assert.match(error.message, new RegExp(`port ${port} .* in use.*PARLEY_HTTP_PORT`));
    return true;
  });
});
