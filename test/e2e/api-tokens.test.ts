// Named tokens of the API and the audit log, on a real cluster: what each scope allows on every route, revocation, and who did what.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { apiScopes, type ApiScope } from "@parley/contracts";
import { Cleanup, startTestCluster, type TestCluster } from "@parley/testing";
import pg from "pg";
import { z } from "zod";

const cleanup = new Cleanup();
let cluster: TestCluster;
let sql: pg.Client;
/** A token with only this scope. */
const tokens = new Map<ApiScope, string>();

const Created = z.object({ name: z.string(), token: z.string() });
const Entries = z.object({
  entries: z.array(
    z.object({ n: z.number(), actor: z.string(), action: z.string(), target: z.unknown(), outcome: z.string() }),
  ),
});

before(async () => {
  cluster = await startTestCluster(cleanup, { processes: [], replicas: { "channel-gateway": 2 } });
  sql = new pg.Client(cluster.databaseUrl);
  await sql.connect();
  cleanup.add(() => sql.end());
  for (const scope of apiScopes) tokens.set(scope, await create(`only-${scope}`, [scope]));
});
after(() => cleanup[Symbol.asyncDispose]());

async function call(token: string, method: string, path: string, body?: object, replica = 0): Promise<Response> {
  return fetch(`${cluster.httpUrls[replica]}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function create(name: string, scopes: ApiScope[], by = cluster.token): Promise<string> {
  const response = await call(by, "POST", "/api/tokens", { name, scopes });
  assert.equal(response.status, 201, await response.clone().text());
  return Created.parse(await response.json()).token;
}

const tokenOf = (scope: ApiScope): string => tokens.get(scope) ?? assert.fail(scope);

async function audit(action: string) {
  const response = await call(cluster.token, "GET", `/api/audit?limit=1000${action === "" ? "" : `&action=${action}`}`);
  return Entries.parse(await response.json()).entries;
}

describe("a token with one scope", () => {
  /** What each route requires; every other route: `read` for GET, else `admin`. Null: any token. */
  const required: Record<string, ApiScope | null> = {
    "POST /api/messages": "talk",
    "POST /api/attachments": "talk",
    "POST /v1/chat": "talk",
    "POST /v1/chat/completions": "talk",
    "POST /v1/responses": "talk",
    "POST /v1/responses/{id}/cancel": "talk",
    "POST /api/sessions/{id}/cancel": "talk",
    "POST /api/approvals/{id}": "approve",
    "GET /api/tokens": "admin",
    "GET /api/audit": "admin",
    "GET /v1/models": null,
    "GET /v1/models/{model}": null,
    "GET /api/ws": null,
    "POST /mcp": null,
    "DELETE /api/console/session": null,
  };

  test("is refused on every route that requires another one, with the scope in the answer", async () => {
    const document = z
      .object({
        paths: z.record(z.string(), z.record(z.string(), z.looseObject({ security: z.array(z.unknown()).optional() }))),
      })
      .parse(await (await fetch(`${cluster.httpUrl}/openapi.json`)).json());
    const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { security }]) => ({ method: method.toUpperCase(), path, security })),
    );
    const closed = routes.filter(({ security }) => security?.length !== 0);
    assert.ok(closed.length > 50, `${closed.length} routes`);
    for (const { method, path } of closed) {
      const wanted = required[`${method} ${path}`];
      const scope = wanted === undefined ? (method === "GET" ? "read" : "admin") : wanted;
      // The check precedes the body and the lookup of what the path names.
      const place = path.replaceAll(/\{\w+\}/g, "none");
      for (const held of apiScopes) {
        // A request that is admitted could change something or stream; the refusals are what counts.
        if (scope === null || held === scope || held === "admin") continue;
        const response = await call(tokenOf(held), method, place);
        const text = await response.text();
        assert.equal(response.status, 403, `${held}: ${method} ${path}: ${text}`);
        assert.match(text, new RegExp(`requires the scope \\\\?"${scope}\\\\?"`), `${method} ${path}`);
      }
    }
  });

  test("may do what its scope names", async () => {
    const said = await call(tokenOf("talk"), "POST", "/v1/chat/completions", {
      model: "parley",
      messages: [{ role: "user", content: "hello" }],
    });
    assert.equal(said.status, 200, await said.clone().text());
    assert.equal((await call(tokenOf("read"), "GET", "/api/sessions")).status, 200);
    assert.equal((await call(tokenOf("approve"), "POST", "/api/approvals/ZZZZZ", { decision: "allow" })).status, 404);
    assert.equal((await call(tokenOf("admin"), "GET", "/api/tokens")).status, 200);
  });

  test("cannot widen its rights by commands in messages, over a WebSocket or over MCP", async () => {
    for (const text of [
      "/mode bypassPermissions",
      "/rules add allow exec",
      "/pair ABCD-EFGH owner",
      "/approve ZZZZZ",
    ]) {
      const response = await call(tokenOf("talk"), "POST", "/api/messages", { text });
      assert.match(await response.text(), /requires the scope/, text);
    }
    const tool = (token: string, name: string, input: object) =>
      fetch(`${cluster.httpUrl}/mcp`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: input } }),
      }).then((response) => response.text());
    assert.match(await tool(tokenOf("talk"), "approval_decide", { id: "ZZZZZ", allow: true }), /requires the scope/);
    assert.match(await tool(tokenOf("talk"), "list_sessions", {}), /requires the scope/);
    assert.match(await tool(tokenOf("read"), "send_message", { text: "hello" }), /requires the scope/);
    assert.doesNotMatch(await tool(tokenOf("read"), "list_sessions", {}), /requires the scope/);

    const frames = [
      { held: "talk", frame: { type: "subscribe", session: "main" } },
      { held: "read", frame: { type: "message", text: "hello", conversation: "x", id: "1" } },
      { held: "read", frame: { type: "cancel", session: "main" } },
      {
        held: "talk",
        frame: {
          type: "control_request",
          request_id: "1",
          session: "main",
          request: { subtype: "add_rules", list: "allow", rules: ["exec"] },
        },
      },
    ] as const;
    for (const { held, frame } of frames) {
      const protocols = ["parley.v1", `parley.bearer.${tokenOf(held)}`];
      const socket = new WebSocket(`${cluster.httpUrl.replace("http", "ws")}/api/ws`, protocols);
      const answer = new Promise<string>((resolve, reject) => {
        socket.addEventListener("message", ({ data }) => resolve(String(data)));
        socket.addEventListener("error", () => reject(new Error("the connection failed")));
      });
      await new Promise((resolve) => socket.addEventListener("open", resolve));
      socket.send(JSON.stringify(frame));
      assert.match(await answer, /requires the scope/, JSON.stringify(frame));
      socket.close();
    }
  });
});

test("refuses a revoked, an expired and an unknown token, and two tokens with one name", async () => {
  const token = await create("short-lived", ["read"]);
  const again = await call(cluster.token, "POST", "/api/tokens", { name: "short-lived", scopes: ["admin"] });
  assert.equal(again.status, 409);
  assert.equal((await call(token, "GET", "/api/sessions")).status, 200);
  const revoked = await call(cluster.token, "POST", "/api/tokens/revoke", { name: "short-lived" });
  assert.deepEqual(await revoked.json(), { revoked: true });
  // The other replica has never seen the token.
  assert.equal((await call(token, "GET", "/api/sessions", undefined, 1)).status, 401);

  const other = await create("short-lived", ["read"]);
  await sql.query("UPDATE parley.api_tokens SET expires_at = now() - interval '1 second' WHERE name = 'short-lived'");
  assert.equal((await call(other, "GET", "/api/sessions")).status, 401);
  assert.equal((await call(`parley_${"x".repeat(43)}`, "GET", "/api/sessions")).status, 401);
});

test("stores only hashes of tokens and returns no token again", async () => {
  const { rows } = await sql.query("SELECT * FROM parley.api_tokens");
  const listed = await (await call(cluster.token, "GET", "/api/tokens")).text();
  const kept = `${JSON.stringify(rows)}${listed}${JSON.stringify(await audit("tokens"))}`;
  for (const token of tokens.values()) assert.ok(!kept.includes(token));
  assert.match(listed, /"name":"only-talk","scopes":\["talk"\]/);
});

describe("the audit log", () => {
  test("names who changed a person and what, also when it failed, and no text", async () => {
    const admin = await create("deployer", ["admin"]);
    const person = { channel: "telegram", account: "main", contactId: "4711" };
    assert.equal((await call(admin, "POST", "/api/people", { ...person, role: "user" })).status, 200);
    const secret = "a text that belongs into no log";
    await call(admin, "POST", "/api/documents/put", { path: "notes/x.md", content: secret });
    await call(admin, "POST", "/api/approvals/ZZZZZ", { decision: "allow" });
    const entries = await audit("");
    assert.ok(!JSON.stringify(entries).includes(secret));
    const find = (action: string, outcome = "requested") =>
      entries.find(
        (entry) => entry.action === action && entry.outcome === outcome && entry.actor.startsWith("token deployer"),
      );
    assert.deepEqual(find("people.set")?.target, { ...person, role: "user" });
    assert.deepEqual(find("documents.put")?.target, { path: "notes/x.md" });
    assert.ok(find("approvals.decide") !== undefined && find("approvals.decide", "failed") !== undefined);
    assert.equal(
      entries.filter(({ action, target }) => action === "tokens.create" && JSON.stringify(target).includes("deployer"))
        .length,
      1,
    );
  });

  test("records refused logins and missing scopes, without the token", async () => {
    const wrong = "parley_wrong-token-of-nobody";
    await call(wrong, "GET", "/api/sessions");
    await call(tokenOf("talk"), "GET", "/api/documents");
    // Written in the background.
    for (; ; await delay(50)) {
      const found = [...(await audit("login")), ...(await audit("scope"))];
      assert.ok(!JSON.stringify(found).includes(wrong));
      const talker = found.some(
        ({ actor, target }) => actor === "token only-talk" && JSON.stringify(target).includes("/api/documents"),
      );
      if (talker && found.some(({ action }) => action === "login.refused")) break;
    }
  });

  test("cannot be changed, not even by the role of the migrations", async () => {
    for (const change of ["UPDATE parley.audit_log SET actor = 'x'", "TRUNCATE parley.audit_log"])
      await assert.rejects(sql.query(change), /never changed/, change);
    await assert.rejects(sql.query("DELETE FROM parley.audit_log"), /kept for at least 90 days/);
    assert.notEqual((await audit("people")).length, 0);
  });
});
