// A few bytes to a server and what comes back: enough to know what it is, without its client library.

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

/** Nothing came back in time, although somebody accepted the connection. */
export class Silent extends Error {
  override readonly name = "Silent";
}

/** Sends `say` and collects until `enough`; rejects when the server cannot be reached, goes away or stays silent. */
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
      connected ? new Silent("it accepts connections and does not answer") : new Error("it cannot be reached in time"),
    );
  // A process that stood still finds its timers before what has come meanwhile: that is heard first.
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
    reject(new Error("code" in error && error.code === "ECONNREFUSED" ? "nobody listens there" : error.message)),
  );
  socket.once("close", () => reject(new Error("it closed the connection")));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}
