// A web server outside of the runner that counts who asks it: the effect of a call that nobody inside can talk away.
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { Cleanup } from "@parley/testing";

export interface Site {
  /** Without a slash at the end. */
  url: string;
  /** How often this path, with its query, was asked for. */
  asked(path: string): number;
}

/**
 * `/search?q=…` answers as SearXNG does, with three hits; a path that holds `never` is not answered at all; `/redirect/7`
 * leads to `/redirect/6`, and so on without end; every other path is a page that says its own name.
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
