// Local servers that count connections, as targets of attempts.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { connect, createServer, type ListenOptions } from "node:net";
import type { Cleanup } from "@parley/testing";

export interface Listener {
  port: number;
  readonly visitors: number;
}

export async function listen(cleanup: Cleanup, options: ListenOptions): Promise<Listener> {
  let visitors = 0;
  const server = createServer((socket) => {
    visitors += 1;
    socket.on("error", () => undefined);
    // The end of a socket is noticed only when it is read.
    socket.resume();
    socket.end("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 6\r\nconnection: close\r\n\r\ninside");
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options, resolve);
  });
  cleanup.add(() => new Promise((resolve) => server.close(resolve)));
  const bound = server.address();
  return {
    port: bound !== null && typeof bound === "object" ? bound.port : 0,
    get visitors() {
      return visitors;
    },
  };
}

export async function listenForDatagrams(cleanup: Cleanup): Promise<Listener> {
  let visitors = 0;
  const socket = createSocket("udp4", () => (visitors += 1));
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  cleanup.add(() => new Promise((resolve) => socket.close(() => resolve(undefined))));
  return {
    port: socket.address().port,
    get visitors() {
      return visitors;
    },
  };
}

/** Asserts that an address is reachable from the test itself, so that an attempt on it is meaningful. */
export async function assertReachable(to: { host: string; port: number } | { path: string }): Promise<void> {
  const reached = await new Promise<boolean>((resolve) => {
    const socket = connect(to, () => resolve(true));
    socket.on("connect", () => socket.destroy());
    socket.on("error", () => resolve(false));
  });
  assert.ok(reached, "the test itself must reach it");
}
