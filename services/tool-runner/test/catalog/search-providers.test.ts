// web_search with settings and a key as in a deployment, against providers that reject unknown requests.
import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { toolCatalog } from "@parley/contracts";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { z } from "zod";
import { openRunnerFixture, type RunnerFixture } from "../support/runner-fixture.ts";

const cleanup = new Cleanup();
let runners: RunnerFixture;
let url: string;
const refused: string[] = [];

const key = "the-right-key";
const hit = { title: "Rye", url: "https://example.org/rye", content: "How to bake", description: "How to bake" };
const TavilyBody = z.strictObject({ query: z.string().min(1).max(400), max_results: z.int().min(0).max(20) });

interface Answer {
  status: number;
  body?: unknown;
}

/** Follows each provider's documentation; rejects every other request. */
function answerTo(request: IncomingMessage, body: string): Answer {
  const { pathname, searchParams } = new URL(request.url ?? "/", url);
  const given = [...searchParams.keys()].toSorted((a, b) => a.localeCompare(b)).join();
  if (pathname === "/brave/res/v1/web/search" && request.method === "GET") {
    if (request.headers["x-subscription-token"] !== key) return { status: 401 };
    const count = Number(searchParams.get("count"));
    const query = searchParams.get("q") ?? "";
    if (given !== "count,q" || !(count >= 1 && count <= 20) || query.length > 400) return { status: 422 };
    return { status: 200, body: { web: { results: [hit] } } };
  }
  if (pathname === "/tavily/search" && request.method === "POST") {
    if (request.headers.authorization !== `Bearer ${key}`) return { status: 401 };
    if (request.headers["content-type"] !== "application/json" || given !== "") return { status: 422 };
    return TavilyBody.safeParse(JSON.parse(body)).success ? { status: 200, body: { results: [hit] } } : { status: 422 };
  }
  if (pathname === "/searxng/search" && request.method === "GET" && given === "format,q") {
    if (searchParams.get("format") !== "json") return { status: 403 };
    return { status: 200, body: { results: [hit] } };
  }
  return { status: 404 };
}

before(async () => {
  runners = await openRunnerFixture(cleanup);
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const answer = answerTo(request, body);
      if (answer.status !== 200) refused.push(`${request.method} ${request.url}: ${answer.status}`);
      const head = response.writeHead(answer.status, { "content-type": "application/json" });
      return head.end(JSON.stringify(answer.body ?? {}));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup.add(async () => {
    server.closeAllConnections();
    server.close();
  });
  const bound = server.address();
  assert.ok(bound !== null && typeof bound === "object");
  url = `http://127.0.0.1:${bound.port}`;
});
after(() => cleanup[Symbol.asyncDispose]());

/** Starts a runner with this provider and environment; returns its search result and the names of its tools. */
async function searched(provider: string, env: Record<string, string>) {
  await using local = new Cleanup();
  const config = join(await temporaryFolder(local), "parley.toml");
  await writeFile(config, `[tools.web.search]\nprovider = "${provider}"\nurl = "${url}/${provider}/"\n`);
  const runner = await runners.runner(`asks-${provider}`, {}, { ...env, PARLEY_CONFIG: config });
  local.add(() => runner.close());
  const { tools } = await runners.core.request(toolCatalog, {});
  const [request] = await runners.plan([
    { tool: "web_search", class: "pure", input: { query: "rye & wheat, 100 %", count: 20 } },
  ]);
  assert.ok(request !== undefined);
  const { result } = await runners.call(request);
  return { names: tools.map(({ name }) => name), result };
}

const keys = { brave: "BRAVE_API_KEY", tavily: "TAVILY_API_KEY", searxng: undefined } as const;

for (const [provider, keyName] of Object.entries(keys)) {
  describe(provider, () => {
    // design: 001.16
    test("receives a request in its documented form", async () => {
      refused.length = 0;
      const { names, result } = await searched(provider, keyName === undefined ? {} : { [keyName]: key });
      assert.deepEqual(refused, []);
      assert.ok(names.includes("web_search"));
      assert.match(result.content, /1\. Rye\n {3}https:\/\/example\.org\/rye\n {3}How to bake/);
    });

    if (keyName === undefined) return;
    // design: 001.16
    test("is not offered without its key", async () => {
      const { names, result } = await searched(provider, {});
      assert.ok(!names.includes("web_search"));
      assert.match(result.content, /Unknown tool "web_search"/);
    });

    test("reports a rejected key without revealing it", async () => {
      const { result } = await searched(provider, { [keyName]: "a-wrong-key" });
      assert.match(result.content, /returned status 401/);
      assert.doesNotMatch(result.content, /a-wrong-key/);
    });
  });
}
