// Sends a few bytes to a server and collects the response: enough to identify it without a client library.

import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

export interface Address {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly user: string;
  readonly password: string;
}

export function addressOf(url: string, defaultPort: number): Address {
  const { hostname, port, protocol, username, password } = new URL(url);
  return {
    host: hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? defaultPort : Number(port),
    tls: protocol === "rediss:" || protocol === "tls:",
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
  };
}

/** The server accepted the connection but did not respond in time. */
export class NoResponseError extends Error {
  override readonly name = "Silent";
}

/** Sends `say` and collects data until `enough` is true; rejects when the server is unreachable, disconnects or stays silent. */
export async function exchange(
  address: Address,
  say: Uint8Array | string,
  enough: (received: Buffer) => boolean,
  timeoutMs: number,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const { host, port } = address;
  const socket: Socket = address.tls ? connectTls({ host, port, servername: host }) : connectTcp({ host, port });
  let connected = false;
  let received = Buffer.alloc(0);
  const late = () =>
    reject(
      connected
        ? new NoResponseError("it accepts connections but does not answer")
        : new Error("it did not accept a connection in time"),
    );
  // After a pause of this process, timers fire before pending data is read: read the data first.
  const timer = setTimeout(() => setImmediate(late), timeoutMs);
  socket.once(address.tls ? "secureConnect" : "connect", () => {
    connected = true;
    if (say.length > 0) socket.write(say);
  });
  socket.on("data", (chunk) => {
    received = Buffer.concat([received, chunk]);
    if (enough(received)) resolve(received);
  });
  socket.once("error", (error) =>
    reject(new Error("code" in error && error.code === "ECONNREFUSED" ? "connection refused" : error.message)),
  );
  socket.once("close", () => reject(new Error("it closed the connection")));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}
