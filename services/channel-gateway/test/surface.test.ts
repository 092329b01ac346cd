// What clients see of the gateway stays the same: paths, schemas, commands, MCP tools and control frames. Texts may change.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { httpDocument } from "../src/docs/http-document.ts";
import { startGatewayStack, token, type GatewayStack, type Replica } from "./support/stack.ts";
import { WsReader } from "./support/watchers.ts";

/** The recorded surface. A deliberate change of the API changes this file too. */
interface Surface {
  /** By method and path: parameters, body, and the top-level fields of each answer. */
  routes: unknown;
  /** The usage of each command, in the order of /help. */
  commands: string[];
  tools: unknown;
  /** The names of the control requests. */
  controlRequests: string[];
}

let stack: GatewayStack;
let replica: Replica;
let recorded: Surface;

before(async () => {
  recorded = JSON.parse(await readFile(new URL("fixtures/surface.json", import.meta.url), "utf8")) as Surface;
  stack = await startGatewayStack();
  replica = await stack.gateway();
});
after(() => stack[Symbol.asyncDispose]());

/** A copy without the texts for people. */
function withoutTexts(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTexts);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(
    ([name, each]) =>
      !(typeof each === "string" && ["summary", "description", "title", "version", "$schema"].includes(name)),
  );
  return Object.fromEntries(kept.map(([name, each]) => [name, withoutTexts(each)]));
}

interface Described {
  security?: unknown[];
  parameters?: unknown[];
  requestBody?: { content: Record<string, { schema: unknown }> };
  responses: Record<string, { content?: Record<string, { schema?: { properties?: object } }> }>;
}

function routesOf(paths: Record<string, Record<string, Described>>): Record<string, object> {
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, route]) => {
      const body = route.requestBody?.content["application/json"]?.schema;
      const answers = Object.entries(route.responses).filter(([status]) => status !== "default");
      const described = {
        open: route.security?.length === 0,
        parameters: route.parameters ?? [],
        ...(body === undefined ? {} : { body }),
        answers: Object.fromEntries(
          answers.map(([status, { content }]) => {
            const [type, media] = Object.entries(content ?? {})[0] ?? [];
            return [
              status,
              type === undefined ? null : [type, ...Object.keys(media?.schema?.properties ?? {}).toSorted()],
            ];
          }),
        ),
      };
      return [`${method.toUpperCase()} ${path}`, described] as const;
    }),
  );
  return Object.fromEntries(routes);
}

/** The form that a value has in the file. */
function asRecorded(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}

test("serves the recorded routes", async () => {
  const { paths } = await replica.json<{ paths: Record<string, Record<string, Described>> }>("/openapi.json");
  const found = routesOf(paths);
  if (process.env["PARLEY_RECORD_SURFACE"] === undefined) {
    return assert.deepEqual(withoutTexts(found), withoutTexts(recorded.routes));
  }
  const file = new URL("fixtures/surface.json", import.meta.url);
  const before = JSON.parse(await readFile(file, "utf8")) as { routes: Record<string, unknown> };
  // Routes that are unchanged keep their recorded form and place.
  const changed = Object.entries(found).filter(
    ([name, route]) => !isDeepStrictEqual(withoutTexts(before.routes[name]), withoutTexts(asRecorded(route))),
  );
  const kept = Object.entries(before.routes).filter(([name]) => name in found);
  const routes = { ...Object.fromEntries(kept), ...Object.fromEntries(changed) };
  return writeFile(file, `${JSON.stringify({ ...before, routes }, null, 2)}\n`);
});

test("matches docs/reference/http.md, which has a section for every route", async () => {
  const openapi = await replica.json<{ paths: Record<string, Record<string, unknown>> }>("/openapi.json");
  const page = new URL("../../../docs/reference/http.md", import.meta.url);
  const document = httpDocument(openapi);
  if (process.env["PARLEY_RECORD_SURFACE"] !== undefined) await writeFile(page, document);
  assert.equal(await readFile(page, "utf8"), document, "stale: run this test with PARLEY_RECORD_SURFACE=1");
  for (const [path, methods] of Object.entries(openapi.paths)) {
    for (const method of Object.keys(methods))
      assert.ok(document.includes(`\n### ${method.toUpperCase()} ${path}\n`), path);
  }
});

test("lists the recorded commands with their usage", async () => {
  const { text } = await replica.json<{ text: string }>("/api/messages", { body: { text: "/help" } });
  assert.deepEqual(
    text.split("\n").filter((line) => line.startsWith("/")),
    recorded.commands,
  );
});

test("offers the recorded MCP tools with their schemas", async () => {
  const client = new Client({ name: "test", version: "1" });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${replica.url}/mcp`), { requestInit }));
  const { tools } = await client.listTools();
  await client.close();
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
  assert.deepEqual(withoutTexts(tools.toSorted(byName)), withoutTexts(recorded.tools));
});

test("accepts the recorded control requests", async () => {
  const ws = await WsReader.open(replica);
  ws.say({ type: "control_request", request_id: "1", session: "main", request: { subtype: "none" } });
  const { response } = (await ws.until(({ type }) => type === "control_response")) as unknown as {
    response: { error: string };
  };
  ws.socket.close();
  const supported = (response.error.split("supported: ")[1] ?? "").split(", ").toSorted();
  assert.deepEqual(supported, recorded.controlRequests);
});
