// Probes and metrics, on a separate listener that is not exposed with the service's port. It opens before the service starts.
//   /livez     the service still works    /startupz  the service has started, or the reason why not
//   /readyz    it can take work now       /metrics   Prometheus text

import { once } from "node:events";
import type { AddressInfo } from "node:net";

import { http } from "@parley/kit";
import type { Registry } from "prom-client";

export interface HealthOptions {
  /** Address to listen on. On a loopback address, a request with a Host header must name a loopback host. */
  host: string;
  port: number;
  metrics: Registry;
  /** Why the service has not started yet; null after it has. */
  startup(): string | null;
  /** Why the service cannot take work now, in one sentence; null: it can. */
  unready(): string | null;
  /** Why the process must be restarted, in one sentence; undefined: it works. Bounded in time. Omitted: a running event loop suffices. */
  live?(): Promise<string | undefined>;
}

export interface HealthListener {
  port: number;
  close(): Promise<void>;
}

const loopback = /^(?:localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)(?::\d+)?$/i;

/** Opens the listener; rejects when the port is not available. */
export async function listenHealth(options: HealthOptions): Promise<HealthListener> {
  const isLocal = loopback.test(options.host);
  const server = http.createServer((incoming, response) => {
    const { host = "localhost" } = incoming.headers;
    // Otherwise a web page could read the metrics of a local cluster by DNS rebinding. A browser always sends a Host.
    if (isLocal && !loopback.test(host)) {
      response.writeHead(403, { "content-type": "text/plain; charset=utf-8" });
      response.end("this address answers only requests to a loopback name\n");
      return;
    }
    /** Null is 200; a text is 503 with that text. */
    const answer = (problem: string | null) => {
      response.writeHead(problem === null ? 200 : 503, { "content-type": "text/plain; charset=utf-8" });
      response.end(`${problem ?? "ok"}\n`);
    };
    const answerLive = async () => {
      answer((await options.live?.()) ?? null);
    };
    switch (incoming.url) {
      case "/livez":
        void answerLive();
        break;
      case "/startupz":
        answer(options.startup());
        break;
      case "/readyz":
        answer(options.startup() ?? options.unready());
        break;
      case "/metrics":
        void options.metrics.metrics().then(
          (text) => response.writeHead(200, { "content-type": options.metrics.contentType }).end(text),
          () => response.writeHead(500).end(),
        );
        break;
      default:
        response.writeHead(404).end();
    }
  });
  server.listen(options.port, options.host);
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
