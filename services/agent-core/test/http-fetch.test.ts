// Requests to a model's server over Node's HTTP client.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, test } from "node:test";
import { promisify } from "node:util";
import { httpFetch } from "../src/model/http-fetch.ts";

type Answer = (incoming: IncomingMessage, response: ServerResponse, body: string) => void;

const run = promisify(execFile);
const stream = { "content-type": "text/event-stream" };
let answer: Answer;
let ports: (number | undefined)[] = [];
let url = "";

const server = createServer((incoming, response) => {
  ports.push(incoming.socket.remotePort);
  let body = "";
  incoming.on("data", (chunk: Buffer) => (body += String(chunk)));
  incoming.on("end", () => answer(incoming, response, body));
});

before(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/messages`;
});
beforeEach(() => (ports = []));
after(() => server.close().closeAllConnections());

const post = (init: RequestInit = {}) => httpFetch(url, { method: "POST", body: '{"text":"Grüße"}', ...init });
const bytesOf = (response: Response) => response.body as AsyncIterable<Uint8Array>;

async function textOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytesOf(response)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe("a request to a model's server", () => {
  test("sends method, headers and body when it has a text body", async () => {
    let seen: unknown;
    answer = ({ method, headers }, response, body) => {
      seen = [method, headers["x-api-key"], headers["content-length"], body];
      response.writeHead(200, { ...stream, "request-id": "r1" }).end("data: 1\n\n");
    };
    const response = await post({ headers: new Headers({ "X-Api-Key": "k" }) });
    assert.deepEqual([response.ok, response.status, response.headers.get("Request-Id")], [true, 200, "r1"]);
    assert.equal(await textOf(response), "data: 1\n\n");
    assert.deepEqual(seen, ["POST", "k", "18", '{"text":"Grüße"}']);
  });

  test("returns the first bytes of a stream before its end", async () => {
    let open: ServerResponse | undefined;
    answer = (_, response) => (open = response.writeHead(200, stream)).write("first");
    const chunks = bytesOf(await post())[Symbol.asyncIterator]();
    assert.equal(String((await chunks.next()).value), "first");
    open?.end("second");
    assert.equal(String((await chunks.next()).value), "second");
    assert.equal((await chunks.next()).done, true);
  });

  test("uses the same connection again when a stream was read to its end", async () => {
    answer = (_, response) => response.writeHead(200, stream).end("data");
    for (let count = 0; count < 3; count++) await textOf(await post());
    assert.equal(new Set(ports).size, 1);
  });

  test("returns status and text when the server refuses it", async () => {
    answer = (_, response) => response.writeHead(429, { "retry-after": "3" }).end('{"type":"error"}');
    const response = await post();
    assert.deepEqual([response.ok, response.status, response.headers.get("retry-after")], [false, 429, "3"]);
    assert.deepEqual(await response.json(), { type: "error" });
  });

  test("follows a redirect", async () => {
    answer = ({ url: path }, response, body) => {
      if (path === "/moved") response.end(body);
      else response.writeHead(308, { location: "/moved" }).end();
    };
    assert.equal(await (await post()).text(), '{"text":"Grüße"}');
  });

  test("rejects and closes the connection when it is aborted during the stream", async () => {
    const closed = Promise.withResolvers<void>();
    answer = (_, response) => {
      response.on("close", closed.resolve);
      response.writeHead(200, stream).write("first");
    };
    const stop = new AbortController();
    const chunks = bytesOf(await post({ signal: stop.signal }))[Symbol.asyncIterator]();
    await chunks.next();
    const next = chunks.next();
    stop.abort();
    await assert.rejects(next);
    await closed.promise;
  });

  test("rejects with an AbortError when it is aborted before the response", async () => {
    const stop = new AbortController();
    answer = () => stop.abort();
    await assert.rejects(post({ signal: stop.signal }), { name: "AbortError" });
  });

  test("rejects with the system's error when the connection is lost during the stream", async () => {
    answer = (_, response) => {
      response.writeHead(200, stream).write("first", () => response.destroy());
    };
    await assert.rejects(textOf(await post()), { code: "ECONNRESET" });
  });

  test("rejects with the system's error when no server listens", async () => {
    const free = createServer().listen(0, "127.0.0.1");
    await once(free, "listening");
    const { port } = free.address() as AddressInfo;
    free.close();
    await once(free, "close");
    await assert.rejects(httpFetch(`http://127.0.0.1:${port}/`, { body: "{}" }), { code: "ECONNREFUSED" });
  });

  test("goes through the proxy of the environment when Node is set to use it", async () => {
    let target: string | undefined;
    answer = (incoming, response, body) => {
      target = incoming.url;
      response.end(`through the proxy: ${body}`);
    };
    const module = JSON.stringify(new URL("../src/model/http-fetch.ts", import.meta.url).href);
    const source = `const { httpFetch } = await import(${module});
      console.log(await (await httpFetch("http://model.invalid/v1", { body: "hello" })).text());`;
    const { stdout } = await run(
      process.execPath,
      ["--conditions=@parley/source", "--input-type=module", "--eval", source],
      { env: { ...process.env, NODE_USE_ENV_PROXY: "1", HTTP_PROXY: new URL(url).origin } },
    );
    assert.equal(stdout.trim(), "through the proxy: hello");
    assert.equal(target, "http://model.invalid/v1");
  });
});
