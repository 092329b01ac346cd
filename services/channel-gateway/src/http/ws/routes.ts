// The WebSocket listener. Upgrades pass the same checks as every request, then become clients (`client.ts`, `stream-client.ts`).
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { http } from "@parley/kit";
import type { FastifyInstance } from "fastify";
import { WebSocketServer } from "ws";
import { requireScope } from "../../operations/registry.ts";
import { accessOf } from "../api-access.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoints } from "../endpoint.ts";
import { HttpError } from "../errors.ts";
import { StreamClient } from "./stream-client.ts";
import { ViewQuery } from "./stream-frames.ts";
import { WsClient } from "./client.ts";

const maxFrameBytes = 512 * 1024;
/** A client that has not answered a ping when the next one is due is terminated. */
const pingEveryMs = 30_000;
const protocolName = "parley.v1";

export interface WsListener {
  readonly clients: number;
  /** Closes all clients with code 1001. */
  close(): void;
}

export function wsRoutes(app: FastifyInstance, endpoints: Endpoints, deps: HttpDeps): WsListener {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: maxFrameBytes,
    handleProtocols: (offered) => (offered.has(protocolName) ? protocolName : ([...offered][0] ?? false)),
  });
  const clients = new Set<WsClient | StreamClient>();
  const upgrades = new WeakMap<IncomingMessage, { socket: Duplex; head: Buffer; response: ServerResponse }>();
  let closing = false;

  app.server.on("upgrade", (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    // Without a listener, a connection reset would crash the process.
    socket.on("error", () => socket.destroy());
    const response = new http.ServerResponse(incoming);
    response.shouldKeepAlive = false;
    // On an upgrade, Node hands over the plain socket of the request.
    response.assignSocket(incoming.socket);
    response.once("finish", () => socket.end());
    upgrades.set(incoming, { socket, head, response });
    app.routing(incoming, response);
  });

  endpoints.add(
    {
      method: "GET",
      url: "/api/ws",
      // Each frame is checked.
      scope: null,
      summary: "Events and messages over a WebSocket",
      description:
        "`format=stream` shows one conversation, or with `all=true` every one, as a stream per model call (docs/events.md); without it, frames are JSON as follows. Client: subscribe, unsubscribe, message, cancel, control_request, ping. Server: the session's events preceded by `session`, subscribed, accepted, command, cancelled, control_response, error, pong. Browsers send the token as the subprotocol `parley.bearer.<token>` along with `parley.v1`.",
      query: ViewQuery,
      answers: { 101: { description: "Switching protocols" }, 426: { description: "Not a WebSocket upgrade" } },
    },
    async ({ query, request, reply }) => {
      const upgrade = upgrades.get(request.raw);
      if (upgrade === undefined) {
        throw new HttpError(426, "upgrade_required", "this route is a WebSocket: request an upgrade", {
          headers: { upgrade: "websocket" },
        });
      }
      const access = accessOf(request);
      if (query.format !== undefined)
        for (const scope of ["read", "talk"] as const) requireScope(access, scope, "a stream of a conversation");
      if (closing) throw new HttpError(503, "unavailable", "this replica is shutting down; reconnect");
      reply.hijack();
      const { socket, head, response } = upgrade;
      response.removeAllListeners("finish");
      response.detachSocket(request.raw.socket);
      server.handleUpgrade(request.raw, socket, head, (ws) => {
        const { format, conversation, all } = query;
        const client =
          format === undefined
            ? new WsClient(ws, deps, access)
            : new StreamClient(ws, deps, access, { conversation, all: all === "true" });
        clients.add(client);
        deps.events.clients("ws", 1);
        ws.once("close", () => {
          clients.delete(client);
          deps.events.clients("ws", -1);
        });
      });
      return undefined;
    },
  );

  const pinging = setInterval(() => {
    for (const client of clients) client.ping();
  }, pingEveryMs);
  pinging.unref();

  return {
    get clients() {
      return clients.size;
    },
    close() {
      closing = true;
      clearInterval(pinging);
      for (const client of clients) client.leave();
    },
  };
}
