// One address for all gateways, as a Kubernetes Service or the HAProxy of Compose: it forwards each new connection to a gateway whose
// readiness probe succeeds, and tries another one when the connection is refused.
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Cleanup } from "@parley/testing";

export interface Gateway {
  name: string;
  httpPort: number;
  healthPort: number;
}

/** As in infra/docker/haproxy.cfg: `inter 1s fall 2 rise 1`. */
const probeEveryMs = 1_000;
const failuresUntilOut = 2;

/** Resolves with the URL. `gateways` returns those that run now. */
export async function startFront(cleanup: Cleanup, gateways: () => Gateway[]): Promise<string> {
  const failures = new Map<string, number>();
  const connections = new Map<string, number>();
  const stopping = new AbortController();
  const probe = async ({ name, healthPort }: Gateway): Promise<void> => {
    const signal = AbortSignal.timeout(probeEveryMs);
    const isReady = await fetch(`http://127.0.0.1:${healthPort}/readyz`, { signal }).then(
      async (response) => (await response.body?.cancel(), response.ok),
      () => false,
    );
    failures.set(name, isReady ? 0 : (failures.get(name) ?? failuresUntilOut) + 1);
  };
  const watch = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await Promise.all(gateways().map(probe));
      await delay(probeEveryMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const candidates = (): Gateway[] =>
    gateways()
      .filter(({ name }) => (failures.get(name) ?? failuresUntilOut) < failuresUntilOut)
      .toSorted((one, other) => (connections.get(one.name) ?? 0) - (connections.get(other.name) ?? 0));
  const count = (name: string, change: number) => connections.set(name, (connections.get(name) ?? 0) + change);

  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (near) => {
    sockets.add(near);
    near.on("error", () => near.destroy()).on("close", () => sockets.delete(near));
    void (async () => {
      for (const { name, httpPort } of candidates()) {
        const far = connect({ port: httpPort, host: "127.0.0.1", allowHalfOpen: true });
        const isConnected = await once(far, "connect").then(
          () => true,
          () => false,
        );
        if (!isConnected) continue;
        count(name, 1);
        far.on("error", () => near.destroy()).on("close", () => (count(name, -1), near.destroy()));
        near.on("close", () => far.destroy());
        near.pipe(far).pipe(near);
        return;
      }
      near.destroy();
    })();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const watching = watch();
  cleanup.add(async () => {
    stopping.abort();
    server.close();
    for (const socket of sockets) socket.destroy();
    await watching;
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
