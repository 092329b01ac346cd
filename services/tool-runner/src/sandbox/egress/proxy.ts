// The egress proxy of one sandboxed command: HTTP (CONNECT and plain http) on a Unix socket, the command's only network.
// `hosts.ts` checks each connection; the proxy connects to the checked address only. It ends with the command.
import { chmod, unlink } from "node:fs/promises";
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { errorMessage } from "@parley/contracts";
import { http } from "@parley/kit";
import type { Resolver } from "../../network/target.ts";
import { findRoute, parseDestination, type Destination, type EgressSettings } from "./hosts.ts";

export interface EgressEvent {
  /** `host:port`, or the raw request target when it is no host. */
  to: string;
  /** Why the connection failed; undefined on success. */
  refused: string | undefined;
  /** Payload bytes sent and received, without the proxy's own messages. */
  sentBytes: number;
  receivedBytes: number;
  durationMs: number;
}

interface EgressProxyOptions {
  settings: EgressSettings;
  resolve: Resolver;
  /** Socket path; must not exist yet. */
  path: string;
  /** Called once per connection, at its end, and once per refusal. */
  readonly onEvent: (event: EgressEvent) => void;
}

export interface EgressProxy {
  /** Refused destinations, once each, in order. */
  readonly refused: ReadonlySet<string>;
  /** Ends every connection. */
  readonly close: () => Promise<void>;
}

/** Concurrent connections of one command: a package manager opens several dozen. */
const maxConnections = 64;
const connectTimeoutMs = 10_000;
/** A connection without traffic for this long is closed. */
const idleTimeoutMs = 120_000;
/** Refusals listed in the command's result. */
const maxRemembered = 20;
/** Hop-by-hop headers (RFC 9110, 7.6.1), and the one that this proxy sets itself (RFC 9112, 3.2.2). */
const ownHeaders = new Set([
  "connection",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Rejects when the socket cannot be created. */
export async function openEgressProxy(options: EgressProxyOptions): Promise<EgressProxy> {
  const refused = new Set<string>();
  const tell = (event: EgressEvent) => {
    if (event.refused !== undefined && refused.size < maxRemembered) refused.add(event.refused);
    options.onEvent(event);
  };
  const sockets = new Set<Duplex>();
  const hold = <T extends Duplex>(socket: T): T => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    // `close` follows every error.
    socket.on("error", () => undefined);
    return socket;
  };
  const context: ProxyContext = { ...options, tell, hold };
  const server = http.createServer((request, response) => void forward(request, response, context));
  server.maxConnections = maxConnections;
  server.on("connection", hold);
  server.on("connect", (request, socket, head) => void tunnel(request, socket, head, context));
  server.on("clientError", (_error, socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.path, resolve);
  });
  await chmod(options.path, 0o600);
  return {
    refused,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
      // Usually the server has already removed the socket.
      await unlink(options.path).catch(() => undefined);
    },
  };
}

interface ProxyContext extends EgressProxyOptions {
  tell: (event: EgressEvent) => void;
  hold: <T extends Duplex>(socket: T) => T;
}

/** Result for a destination: a connected socket, or a status with its reason. */
type Reached = { socket: Socket } | { status: 400 | 403 | 502; reason: string };

async function reach(wanted: Destination, context: ProxyContext): Promise<Reached> {
  const route = await findRoute(wanted, context.settings, context.resolve);
  if ("refused" in route) return { status: 403, reason: route.refused };
  if ("lost" in route) return { status: 502, reason: route.lost };
  const { address, family } = route.to;
  const socket = context.hold(connect({ host: address, port: wanted.port, family, allowHalfOpen: true }));
  return new Promise((resolve) => {
    const fail = (reason: string) => {
      socket.destroy();
      resolve({ status: 502, reason: `${wanted.host}:${wanted.port} cannot be reached: ${reason}` });
    };
    const timer = setTimeout(() => fail("connection timed out"), connectTimeoutMs);
    socket.once("error", (error) => fail(error.message));
    socket.once("connect", () => resolve({ socket }));
    socket.once("close", () => clearTimeout(timer));
    socket.once("connect", () => clearTimeout(timer));
  });
}

/**
 * Connects to the destination of a request; undefined after a refusal, which `refuse` has answered and `tell` reported. Reports a
 * connection when it closes.
 */
async function open(
  request: IncomingMessage,
  wanted: Destination | undefined,
  context: ProxyContext,
  refuse: (status: number, reason: string) => void,
): Promise<Socket | undefined> {
  const startedAt = performance.now();
  const report = (refused: string | undefined, sentBytes = 0, receivedBytes = 0) => {
    const to = wanted === undefined ? (request.url ?? "").slice(0, 200) : `${wanted.host}:${wanted.port}`;
    context.tell({ to, refused, sentBytes, receivedBytes, durationMs: performance.now() - startedAt });
  };
  const reached: Reached =
    wanted === undefined
      ? { status: 400, reason: "the proxy accepts http://host/ and CONNECT host:port only" }
      : await reach(wanted, context);
  if ("status" in reached) {
    refuse(reached.status, reached.reason);
    report(reached.reason);
    return undefined;
  }
  const { socket } = reached;
  socket.once("close", () => report(undefined, socket.bytesWritten, socket.bytesRead));
  return socket;
}

async function tunnel(request: IncomingMessage, inner: Duplex, head: Buffer, context: ProxyContext): Promise<void> {
  const outer = await open(request, parseDestination(request.url ?? ""), context, (status, reason) =>
    inner.end(answerText(status, reason)),
  );
  if (outer === undefined) return;
  const end = () => {
    inner.destroy();
    outer.destroy();
  };
  outer.setTimeout(idleTimeoutMs, end);
  outer.once("close", () => inner.destroy());
  inner.once("close", () => outer.destroy());
  // The client may have disconnected during name resolution.
  if (inner.destroyed) return end();
  inner.write("HTTP/1.1 200 Connection established\r\n\r\n");
  if (head.length > 0) outer.write(head);
  inner.pipe(outer);
  outer.pipe(inner);
}

async function forward(request: IncomingMessage, response: ServerResponse, context: ProxyContext): Promise<void> {
  const url = URL.canParse(request.url ?? "") ? new URL(request.url ?? "") : undefined;
  const plain = url?.protocol === "http:" && url.username === "" && url.password === "";
  const outer = await open(request, plain ? parseDestination(url.host, 80) : undefined, context, (status, reason) =>
    response.writeHead(status, textHeaders).end(`${reason}\n`),
  );
  if (outer === undefined || url === undefined) return;
  // The client may have disconnected, or the command ended, during name resolution.
  if (request.socket.destroyed) {
    outer.destroy();
    return;
  }
  outer.setTimeout(idleTimeoutMs, () => outer.destroy());
  const forwarded = http.request({
    createConnection: () => outer,
    method: request.method,
    path: `${url.pathname}${url.search}`,
    // Overrides the command's own Host header: only the checked host is requested.
    headers: { ...passedOn(request.headers), host: url.host, connection: "close" },
  });
  const fail = (reason: string) => {
    outer.destroy();
    if (response.headersSent) response.destroy();
    else response.writeHead(502, textHeaders).end(`${url.host} ${reason}\n`);
  };
  forwarded.once("response", (answer) => {
    try {
      response.writeHead(answer.statusCode ?? 502, { ...passedOn(answer.headers), connection: "close" });
    } catch (error) {
      // Node.js reads some responses that it refuses to write, for example with a status below 100.
      fail(`sent an invalid response: ${errorMessage(error)}`);
      return;
    }
    answer.pipe(response);
    answer.once("error", () => response.destroy());
  });
  forwarded.once("error", (error) => fail(`cannot be reached: ${error.message}`));
  response.once("close", () => outer.destroy());
  request.pipe(forwarded);
}

const textHeaders = { "content-type": "text/plain; charset=utf-8", connection: "close" };

/** A content length is forwarded unchanged; a body without one is sent in chunks. */
function passedOn(headers: OutgoingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !ownHeaders.has(name)));
}

function answerText(status: number, reason: string): string {
  const body = `${reason}\n`;
  return [
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? ""}`,
    "content-type: text/plain; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
    "",
    body,
  ].join("\r\n");
}
