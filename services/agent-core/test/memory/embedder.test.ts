// Embedders over real HTTP, with both APIs, and their errors.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { Cleanup } from "@parley/testing";
import { EmbedderError, httpEmbedder } from "../../src/memory/embedder.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

interface Seen {
  path: string;
  headers: IncomingHttpHeaders;
  body: unknown;
}

/** A server with a fixed response; `undefined`: it never responds. */
async function serve(answer: unknown, status = 200): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      seen.push({ path: request.url ?? "", headers: request.headers, body: JSON.parse(body) });
      return answer === undefined ? response : response.writeHead(status).end(JSON.stringify(answer));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup.add(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, seen };
}

const settings = { model: "small", batch: 32, timeout_seconds: 5 };
const never = new AbortController().signal;

test("sends the key to an OpenAI-compatible server and returns vectors in the order of the texts", async () => {
  const { url, seen } = await serve({
    data: [
      { index: 1, embedding: [0, 1] },
      { index: 0, embedding: [1, 0] },
    ],
  });
  const embedder = httpEmbedder({ ...settings, url: `${url}/v1/`, api: "openai" }, "the-key");
  assert.deepEqual(await embedder.embed(["a", "b"], never), [Float32Array.of(1, 0), Float32Array.of(0, 1)]);
  assert.deepEqual(seen[0]?.body, { model: "small", input: ["a", "b"] });
  assert.deepEqual([seen[0]?.path, seen[0]?.headers.authorization], ["/v1/embeddings", "Bearer the-key"]);
});

test("calls Ollama at its own path without a key", async () => {
  const { url, seen } = await serve({ embeddings: [[0.5, -2]] });
  const embedder = httpEmbedder({ ...settings, url, api: "ollama" }, undefined);
  assert.deepEqual(await embedder.embed(["a"], never), [Float32Array.of(0.5, -2)]);
  assert.deepEqual([seen[0]?.path, seen[0]?.headers.authorization], ["/api/embed", undefined]);
});

test("throws for an error, an invalid or a short response without repeating the text", async () => {
  const answers = [
    await serve({ error: "you said: secret" }, 500),
    await serve({ data: "secret" }),
    await serve({ data: [] }),
  ];
  for (const { url } of answers) {
    const embedder = httpEmbedder({ ...settings, url, api: "openai" }, undefined);
    await assert.rejects(
      embedder.embed(["secret"], never),
      (error) => error instanceof EmbedderError && !error.message.includes("secret"),
    );
  }
});

test("aborts a request without response when the signal aborts", async () => {
  const { url, seen } = await serve(undefined);
  const stop = new AbortController();
  const asked = httpEmbedder({ ...settings, url, api: "openai" }, undefined).embed(["a"], stop.signal);
  const gaveUp = assert.rejects(asked, (error) => error === stop.signal.reason);
  stop.abort(new Error("enough"));
  await gaveUp;
  assert.ok(seen.length <= 1);
});

test("names the address when the server is unreachable", async () => {
  const embedder = httpEmbedder({ ...settings, url: "http://127.0.0.1:1", api: "openai" }, undefined);
  await assert.rejects(embedder.embed(["a"], never), /http:\/\/127\.0\.0\.1:1\/embeddings does not respond/);
});
