// Size limits of responses from MCP servers over HTTP, per message of a stream.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import { after, describe, test } from "node:test";
import { Cleanup } from "@parley/testing";
import fc from "fast-check";
import { bounded, boundedFetch } from "../../src/mcp/bounded-fetch.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

/** True when all bytes passed. */
async function passes(chunks: readonly string[], maxBytes: number, stream: boolean): Promise<boolean> {
  let exceeded = false;
  const through = ReadableStream.from(chunks.map((chunk) => Buffer.from(chunk))).pipeThrough(
    bounded(maxBytes, stream, () => (exceeded = true)),
  );
  try {
    let text = "";
    for await (const chunk of through) text += Buffer.from(chunk).toString();
    assert.equal(text, chunks.join(""));
    return true;
  } catch {
    assert.ok(exceeded);
    return false;
  }
}

describe("the size limit", () => {
  test("applies to a whole response, or to each message of a stream, for any chunking", async () => {
    const messages = ["data: 12345\n\n", "data: 12345\r\n\r\n", "data: 1\ndata: 2\n\n", "data: 1\r\r"];
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...messages), { maxLength: 20 }), fc.nat(7), async (all, size) => {
        const text = all.join("");
        const chunks = text.match(new RegExp(`[^]{1,${size + 1}}`, "g")) ?? [];
        assert.equal(await passes(chunks, 20, true), true);
        assert.equal(await passes(chunks, 20, false), text.length <= 20);
      }),
    );
    assert.equal(await passes(["data: 123456", "7890", "12345\n\n"], 20, true), false);
  });

  test("counts all lines of a message when they end with CR, LF or CRLF", async () => {
    for (const end of ["\r\n", "\r", "\n"]) {
      const lines = Array.from({ length: 4 }, () => `data: 1${end}`);
      assert.equal(await passes([...lines, end], 20, true), false, JSON.stringify(end));
      assert.equal(
        await passes(
          lines.flatMap((line) => [line.slice(0, -1), line.slice(-1), end]),
          20,
          true,
        ),
        true,
        JSON.stringify(end),
      );
    }
  });
});

test("aborts an endless response with an error and keeps the URL of a redirect", async () => {
  const server: Server = createServer((request, response) => {
    if (request.url === "/from") response.writeHead(307, { location: "/to" }).end();
    else if (request.url === "/to") response.end("here");
    else {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const more = () => {
        while (response.write("x".repeat(10_000)));
      };
      response.on("drain", more);
      more();
    }
  });
  cleanup.add(async () => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  let cut = 0;
  const get = boundedFetch(100_000, () => (cut += 1));
  await assert.rejects(async () => (await get(`${url}/endless`)).text(), /more than 100000 bytes/);
  assert.equal(cut, 1);
  const moved = await get(`${url}/from`);
  assert.deepEqual([await moved.text(), moved.url, moved.redirected], ["here", `${url}/to`, true]);
});
