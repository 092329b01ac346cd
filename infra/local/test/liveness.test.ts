// The supervisor detects a running replica that cannot work by its `/livez`.
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { test } from "node:test";
import { whenStuck } from "../src/supervisor/liveness.ts";

const times = { periodMs: 5, timeoutMs: 60_000, failures: 3 };

/** A fake health listener. */
async function serve(listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { port: typeof address === "object" && address !== null ? address.port : 0, [Symbol.dispose]: close };
}

test("reports a replica as stuck when /livez fails several times in a row", async () => {
  // Two failures with a success in between are not consecutive.
  const statuses = [503, 503, 200, 503, 503, 503];
  using health = await serve((_, response) => {
    const status = statuses.shift() ?? 200;
    response.writeHead(status).end(status === 503 ? "its threads are blocked\n" : "ok\n");
  });
  const reason = await whenStuck(health.port, new AbortController().signal, times);
  assert.equal(reason, "its threads are blocked");
  assert.deepEqual(statuses, []);
});

test("reports a replica as stuck when /livez does not answer", async () => {
  using health = await serve(() => undefined);
  const reason = await whenStuck(health.port, new AbortController().signal, { ...times, timeoutMs: 200 });
  assert.match(reason ?? "", /^no answer from \/livez/);
});

test("reports nothing when it is aborted", async () => {
  const stop = new AbortController();
  let probes = 0;
  using health = await serve((_, response) => {
    response.writeHead(503).end("stuck");
    probes += 1;
    if (probes === 2) stop.abort();
  });
  assert.equal(await whenStuck(health.port, stop.signal, times), undefined);
});
