// Certificates for tests, valid for a hundred years, and a TLS listener in front of a server without TLS.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { TLSSocket } from "node:tls";
import type { Cleanup } from "./stack.ts";

/** Paths of PEM files. `server` is for localhost and 127.0.0.1, `otherHost` for localhost and other.example; one CA signed all. */
export const tlsFixtures = {
  ca: fixture("ca.pem"),
  server: { cert: fixture("server.pem"), key: fixture("server.key") },
  otherHost: { cert: fixture("other-host.pem"), key: fixture("other-host.key") },
  client: { cert: fixture("client.pem"), key: fixture("client.key") },
};

function fixture(name: string): string {
  return fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url));
}

/**
 * Listens on 127.0.0.1 with the server certificate and forwards everything to `targetPort` in plain text. With `postgres` it
 * first answers PostgreSQL's request for TLS. Returns its port.
 */
export async function startTlsFront(
  cleanup: Cleanup,
  targetPort: number,
  { postgres = false }: { postgres?: boolean } = {},
): Promise<number> {
  const sockets = new Set<Socket>();
  const serve = async (socket: Socket): Promise<void> => {
    if (postgres) {
      await once(socket, "readable");
      socket.read(8);
      socket.write("S");
    }
    const secure = new TLSSocket(socket, {
      isServer: true,
      cert: readFileSync(tlsFixtures.server.cert),
      key: readFileSync(tlsFixtures.server.key),
    });
    const target = connect(targetPort, "127.0.0.1");
    for (const [one, other] of [
      [secure, target],
      [target, secure],
    ] as const) {
      sockets.add(one);
      one.on("error", () => other.destroy()).on("close", () => other.destroy());
      one.pipe(other);
    }
  };
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    void serve(socket).catch(() => socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup.add(async () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}
