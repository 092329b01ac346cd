// A web server outside the runner that counts requests, as an independent measure of a call's effects.
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { Cleanup } from "@parley/testing";

export interface Site {
  /** Without a trailing slash. */
  url: string;
  /** The number of requests for this path and query. */
  asked(path: string): number;
}

/**
 * `/search?q=…` responds like SearXNG, with three hits; a path that contains `never` gets no response; `/redirect/7`
 * redirects to `/redirect/6`, and so on; every other path returns a page that contains the path.
 */
export async function openSite(cleanup: Cleanup): Promise<Site> {
  const counts = new Map<string, number>();
  const server = createServer(({ url = "/" }, response) => {
    counts.set(url, (counts.get(url) ?? 0) + 1);
    if (!url.includes("never")) answer(url, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup.add(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const bound = server.address();
  assert.ok(bound !== null && typeof bound === "object");
  return { url: `http://127.0.0.1:${bound.port}`, asked: (path) => counts.get(path) ?? 0 };
}

function answer(url: string, response: ServerResponse): void {
  if (url.startsWith("/search?")) {
    const results = [1, 2, 3].map((n) => ({
      title: `hit ${n}`,
      url: `https://example.org/${n}`,
      content: "x".repeat(900),
    }));
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ results }));
    return;
  }
  const hop = /^\/redirect\/(\d+)$/.exec(url)?.[1];
  if (hop !== undefined) {
    response.writeHead(302, { location: `/redirect/${Number(hop) - 1}` }).end();
    return;
  }
  response.writeHead(200, { "content-type": "text/plain" }).end(`This is ${url}. ${"It goes on. ".repeat(100)}`);
}
