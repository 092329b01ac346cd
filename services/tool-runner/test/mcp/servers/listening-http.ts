// The speech server over HTTP, in this process: modern, or legacy with a session and a stream per client.
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import {
  createMcpHandler,
  WebStandardStreamableHTTPServerTransport,
  type McpServer,
} from "@modelcontextprotocol/server";
import { listening, notification, type ListeningOptions } from "./listening-server.ts";

export interface ListeningOverHttp {
  /** URL of the MCP endpoint. */
  url: string;
  /** Ends all open streams. */
  endStreams(): void;
  stop(): Promise<void>;
}

export type HttpOptions = Omit<ListeningOptions, "announce"> & { era: "legacy" | "2026" };

type Handler = (request: Request) => Promise<Response>;

export async function startListeningOverHttp(options: HttpOptions): Promise<ListeningOverHttp> {
  const way = options.era === "2026" ? newKind(options) : oldKind(options);
  const streams = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    streams.add(response);
    response.once("close", () => streams.delete(response));
    serve(way.fetch, request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the server has no port");
  return {
    url: `http://127.0.0.1:${address.port}/mcp`,
    endStreams() {
      for (const response of streams) response.destroy();
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await way.stop();
    },
  };
}

function newKind(options: HttpOptions): { fetch: Handler; stop(): Promise<void> } {
  const ears = listening({ ...options, announce: ({ uri }) => handler.notify.resourceUpdated(uri) });
  const handler = createMcpHandler(() => ears.connect(), { legacy: "reject" });
  return {
    fetch: (request) => handler.fetch(request),
    async stop() {
      ears.stop();
      await handler.close();
    },
  };
}

function oldKind(options: HttpOptions): { fetch: Handler; stop(): Promise<void> } {
  const clients = new Map<string, { server: McpServer; transport: WebStandardStreamableHTTPServerTransport }>();
  const ears = listening({
    ...options,
    announce({ sessionId, uri }) {
      for (const { server } of clients.values()) {
        if (options.announcement === "resource") void server.server.sendResourceUpdated({ uri });
        else void server.server.notification({ method: notification, params: { session_id: sessionId } });
      }
    },
  });
  return {
    async fetch(request) {
      const known = clients.get(request.headers.get("mcp-session-id") ?? "");
      if (known !== undefined) return known.transport.handleRequest(request);
      const server = ears.connect();
      const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => {
          clients.set(id, { server, transport });
        },
      });
      await server.connect(transport);
      return transport.handleRequest(request);
    },
    async stop() {
      ears.stop();
      await Promise.all([...clients.values()].map(({ server }) => server.close()));
    },
  };
}

async function serve(handle: Handler, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const { method = "GET", url = "/" } = request;
  const body = Buffer.concat(await request.toArray());
  const answer = await handle(
    new Request(new URL(url, "http://127.0.0.1"), {
      method,
      headers: new Headers(Object.entries(request.headers).map(([name, value]) => [name, String(value)])),
      signal: gone.signal,
      ...(method === "POST" ? { body } : {}),
    }),
  );
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.flushHeaders();
  for await (const chunk of answer.body ?? []) response.write(chunk);
  response.end();
}
