import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { trackConnections } from "../src/http/idle-connections.ts";

test(
  "closes connections that have sent nothing, not those with a request in progress",
  { timeout: 30_000 },
  async (context) => {
    const server = createServer();
    const { closeIdle } = trackConnections(server);
    context.after(() => server.closeAllConnections());
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const accepted = once(server, "connection");
    const unused = connect(port, "127.0.0.1");
    await accepted;
    const request = get({ port, host: "127.0.0.1", agent: false });
    const [, response] = (await once(server, "request")) as [unknown, ServerResponse];
    const closed = once(server, "close");
    server.close();
    closeIdle();
    await once(unused, "close");
    response.end("done");
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    assert.equal(await text(answer), "done");
    closeIdle();
    await closed;
  },
);
