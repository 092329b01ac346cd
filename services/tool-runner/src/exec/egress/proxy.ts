// The way out of one command behind the wall: an HTTP proxy (CONNECT and plain http) on a Unix socket, which is all the command has of
// a network. Each connection is checked by `route.ts` and goes to the address that was checked. It ends with the command.
import { chmod, unlink } from "node:fs/promises";
import http, { type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Resolver } from "../../web/target.ts";
import { parseDestination, type Destination, type EgressSettings } from "./hosts.ts";
import { findRoute } from "./route.ts";

export interface EgressEvent {
  /** `host:port`, or what was asked for where that is no host. */
  to: string;
  /** Why it was not reached; undefined: it was. */
  refused: string | undefined;
  /** Bytes that left, bytes that came, without what the proxy itself says. */
  sentBytes: number;
  receivedBytes: number;
  durationMs: number;
}

interface EgressProxyOptions {
  settings: EgressSettings;
  resolve: Resolver;
  /** Where it listens: a path that does not exist yet. */
  path: string;
  /** Told once a connection, at its end, or a refusal. */
  readonly onEvent: (event: EgressEvent) => void;
}

export interface EgressProxy {
  /** What was asked for and refused, once each, in order. */
  readonly refused: ReadonlySet<string>;
  /** Ends every connection. */
  readonly close: () => Promise<void>;
}

/** Connections of one command at the same time: a package manager opens some dozens. */
const maxConnections = 64;
const connectTimeoutMs = 10_000;
/** A connection on which nothing moves for so long is ended. */
const idleTimeoutMs = 120_000;
/** Refusals that are remembered for the command's result. */
const maxRemembered = 20;
/** Headers that are between two neighbours (RFC 9110, 7.6.1), and the one that this proxy writes itself (RFC 9112, 3.2.2). */
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

/** Rejects where the socket cannot be made. */
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
    // Its end is told by `close`.
    socket.on("error", () => undefined);
    return socket;
  };
  const desk: Desk = { ...options, tell, hold };
  const server = http.createServer((request, response) => void forward(request, response, desk));
  server.maxConnections = maxConnections;
  server.on("connection", hold);
  server.on("connect", (request, socket, head) => void tunnel(request, socket, head, desk));
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
      // The server has removed it, unless somebody else has.
      await unlink(options.path).catch(() => undefined);
    },
  };
}

interface Desk extends EgressProxyOptions {
  tell: (event: EgressEvent) => void;
  hold: <T extends Duplex>(socket: T) => T;
}

/** What a destination comes to: a connected socket, or a status with its reason. */
type Reached = { socket: Socket } | { status: 403 | 502; reason: string };

async function reach(wanted: Destination, desk: Desk): Promise<Reached> {
  const route = await findRoute(wanted, desk.settings, desk.resolve);
  if ("refused" in route) return { status: 403, reason: route.refused };
  if ("lost" in route) return { status: 502, reason: route.lost };
  const { address, family } = route.to;
  const socket = desk.hold(connect({ host: address, port: wanted.port, family, allowHalfOpen: true }));
  return new Promise((resolve) => {
    const fail = (reason: string) => {
      socket.destroy();
      resolve({ status: 502, reason: `${wanted.host}:${wanted.port} cannot be reached: ${reason}` });
    };
    const timer = setTimeout(() => fail("it does not answer"), connectTimeoutMs);
    socket.once("error", (error) => fail(error.message));
    socket.once("connect", () => resolve({ socket }));
    socket.once("close", () => clearTimeout(timer));
    socket.once("connect", () => clearTimeout(timer));
  });
}

async function tunnel(request: IncomingMessage, inner: Duplex, head: Buffer, desk: Desk): Promise<void> {
  const startedAt = performance.now();
  const wanted = parseDestination(request.url ?? "");
  const to = wanted === undefined ? (request.url ?? "").slice(0, 200) : `${wanted.host}:${wanted.port}`;
  const reached: Reached | undefined = wanted === undefined ? undefined : await reach(wanted, desk);
  if (reached === undefined || "status" in reached) {
    const status = reached?.status ?? 400;
    const reason = reached?.reason ?? "CONNECT needs host:port";
    inner.end(answerText(status, reason));
    desk.tell({ to, refused: reason, sentBytes: 0, receivedBytes: 0, durationMs: performance.now() - startedAt });
    return;
  }
  const { socket: outer } = reached;
  const end = () => {
    inner.destroy();
    outer.destroy();
  };
  outer.setTimeout(idleTimeoutMs, end);
  outer.once("close", () => {
    inner.destroy();
    const durationMs = performance.now() - startedAt;
    desk.tell({ to, refused: undefined, sentBytes: outer.bytesWritten, receivedBytes: outer.bytesRead, durationMs });
  });
  inner.once("close", () => outer.destroy());
  // It may have gone while the name was looked up.
  if (inner.destroyed) return end();
  inner.write("HTTP/1.1 200 Connection established\r\n\r\n");
  if (head.length > 0) outer.write(head);
  inner.pipe(outer);
  outer.pipe(inner);
}

async function forward(request: IncomingMessage, response: ServerResponse, desk: Desk): Promise<void> {
  const startedAt = performance.now();
  const url = URL.canParse(request.url ?? "") ? new URL(request.url ?? "") : undefined;
  const wanted =
    url === undefined || url.protocol !== "http:" || url.username !== "" || url.password !== ""
      ? undefined
      : parseDestination(url.host, 80);
  const to = wanted === undefined ? (request.url ?? "").slice(0, 200) : `${wanted.host}:${wanted.port}`;
  const reached: Reached | undefined = wanted === undefined ? undefined : await reach(wanted, desk);
  if (url === undefined || reached === undefined || "status" in reached) {
    const reason =
      reached !== undefined && "reason" in reached ? reached.reason : "a proxy is asked for http://host/ or CONNECT";
    response.writeHead(reached !== undefined && "status" in reached ? reached.status : 400, textHeaders);
    response.end(`${reason}\n`);
    desk.tell({ to, refused: reason, sentBytes: 0, receivedBytes: 0, durationMs: performance.now() - startedAt });
    return;
  }
  const { socket: outer } = reached;
  outer.setTimeout(idleTimeoutMs, () => outer.destroy());
  outer.once("close", () => {
    const durationMs = performance.now() - startedAt;
    desk.tell({ to, refused: undefined, sentBytes: outer.bytesWritten, receivedBytes: outer.bytesRead, durationMs });
  });
  const asked = http.request({
    createConnection: () => outer,
    method: request.method,
    path: `${url.pathname}${url.search}`,
    // Whatever host the command names in its own header: the one that was checked is asked for.
    headers: { ...passedOn(request.headers), host: url.host, connection: "close" },
  });
  asked.once("response", (answer) => {
    response.writeHead(answer.statusCode ?? 502, { ...passedOn(answer.headers), connection: "close" });
    answer.pipe(response);
    answer.once("error", () => response.destroy());
  });
  asked.once("error", (error) => {
    outer.destroy();
    if (response.headersSent) response.destroy();
    else response.writeHead(502, textHeaders).end(`${to} cannot be reached: ${error.message}\n`);
  });
  response.once("close", () => outer.destroy());
  request.pipe(asked);
}

const textHeaders = { "content-type": "text/plain; charset=utf-8", connection: "close" };

/** A body's length is passed on as it is; one without is sent in chunks. */
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
