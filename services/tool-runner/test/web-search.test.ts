// web_search against servers that respond like the providers.
import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { webSearchTool } from "../src/tools/web-search.ts";
import type { SearchProvider } from "../src/web/search.ts";
import type { ToolOutput } from "../src/tool/tool.ts";
import { makeWorkspaceFixture } from "./support/workspace-fixture.ts";

interface Answer {
  status?: number;
  /** Sent unchanged instead of `body`. */
  text?: string;
  headers?: Record<string, string>;
  body?: unknown;
}

interface Asked {
  request: IncomingMessage;
  body: string;
}

/** A provider that sends these responses in order and repeats the last one. */
async function provide(answers: Answer[]): Promise<AsyncDisposable & { url: string; asked: Asked[] }> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const answer = answers[Math.min(asked.length, answers.length - 1)];
      asked.push({ request, body });
      response.writeHead(answer?.status ?? 200, { "content-type": "application/json", ...answer?.headers });
      return response.end(answer?.text ?? JSON.stringify(answer?.body ?? {}));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  assert.ok(bound !== null && typeof bound === "object");
  return {
    url: `http://127.0.0.1:${bound.port}`,
    asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function search(
  provider: SearchProvider,
  args: Record<string, unknown>,
  signal?: AbortSignal,
): Promise<ToolOutput> {
  await using ground = await makeWorkspaceFixture();
  return ground.call(webSearchTool(provider), args, signal);
}

const hit = { title: "Rye <strong>bread</strong>", url: "https://example.org/rye" };
const snippet = "How to &quot;bake&quot;\n <em>rye</em> &amp; wheat";
const expected =
  /^\[untrusted [^\n]*\n1\. Rye bread\n {3}https:\/\/example\.org\/rye\n {3}How to "bake" rye & wheat\n\[end/;

test("queries Brave in its format and cleans the hits", async () => {
  await using site = await provide([{ body: { web: { results: [{ ...hit, description: snippet }] } } }]);
  const { content } = await search({ name: "brave", key: "k1", url: site.url }, { query: "rye & wheat", count: 3 });
  assert.match(content, expected);
  const request = site.asked[0]?.request;
  assert.equal(request?.url, "/res/v1/web/search?q=rye+%26+wheat&count=3");
  assert.equal(request?.headers["x-subscription-token"], "k1");
});

test("queries Tavily in its format and cleans the hits", async () => {
  await using site = await provide([{ body: { results: [{ ...hit, content: snippet }] } }]);
  const { content } = await search({ name: "tavily", key: "k2", url: site.url }, { query: "rye" });
  assert.match(content, expected);
  const asked = site.asked[0];
  assert.equal(`${asked?.request.method} ${asked?.request.url}`, "POST /search");
  assert.equal(asked?.request.headers.authorization, "Bearer k2");
  assert.deepEqual(JSON.parse(asked?.body ?? ""), { query: "rye", max_results: 5 });
});

test("queries SearXNG in its format and shows at most the requested count", async () => {
  const results = Array.from({ length: 30 }, (_, index) => ({ ...hit, title: `hit ${index}`, content: snippet }));
  await using site = await provide([{ body: { results } }]);
  const { content } = await search({ name: "searxng", key: "", url: site.url }, { query: "rye", count: 2 });
  assert.equal(content.match(/^\d+\. hit/gm)?.length, 2);
  assert.equal(site.asked[0]?.request.url, "/search?q=rye&format=json");
  assert.equal(site.asked[0]?.request.headers.authorization, undefined);
});

test("makes three attempts when the provider is overloaded", async () => {
  await using site = await provide([
    { status: 429 },
    { status: 503 },
    { body: { results: [{ ...hit, content: "x" }] } },
  ]);
  const found = await search({ name: "searxng", key: "", url: site.url }, { query: "rye" });
  assert.equal(found.isError, false);
  assert.equal(site.asked.length, 3);
  await using down = await provide([{ status: 500 }]);
  const failed = await search({ name: "searxng", key: "", url: down.url }, { query: "rye" });
  assert.deepEqual(failed, {
    content: "The search provider (searxng) returned status 500 in 3 attempts.",
    isError: true,
  });
  assert.equal(down.asked.length, 3);
});

test("makes one attempt when the provider refuses or sends a long retry-after", async () => {
  for (const [answer, said] of [
    [{ status: 401 }, /status 401\.$/],
    [{ status: 429, headers: { "retry-after": "60" } }, /retry in 60 s/],
    [{ body: { error: "?" } }, /an invalid response/],
    [{ text: "<html>Sign in</html>" }, /an invalid response/],
  ] as const) {
    await using site = await provide([answer]);
    const { content, isError } = await search({ name: "tavily", key: "secret-key", url: site.url }, { query: "rye" });
    assert.equal(isError, true);
    assert.match(content, said);
    assert.doesNotMatch(content, /secret-key/);
    assert.equal(site.asked.length, 1);
  }
});

test("does not follow a redirect, so that the key stays with the provider", async () => {
  await using thief = await provide([{ body: { results: [] } }]);
  await using site = await provide([{ status: 302, headers: { location: thief.url } }]);
  assert.match(
    (await search({ name: "tavily", key: "k", url: site.url }, { query: "rye" })).content,
    /could not be reached/,
  );
  assert.equal(thief.asked.length, 0);
});

test("reports no results, invalid arguments and cancellation", async () => {
  await using site = await provide([{ body: { web: null } }]);
  const brave = { name: "brave", key: "k", url: site.url } as const;
  assert.deepEqual(await search(brave, { query: "rye" }), { content: "No results.", isError: false });
  assert.match(
    (await search(brave, { query: "rye", count: 50 })).content,
    /count: [^]*Accepted arguments: query \(required\), count/,
  );
  const control = new AbortController();
  control.abort(new Error("cancelled"));
  assert.equal((await search(brave, { query: "rye" }, control.signal)).isError, true);
  assert.equal(site.asked.length, 1);
});
