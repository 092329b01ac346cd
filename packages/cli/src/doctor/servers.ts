// Checks PostgreSQL, Redis and NATS with one request each, in the protocol of the server, without a client library.

import { existsSync, readFileSync } from "node:fs";
import { connect as connectTcp, type Socket } from "node:net";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";

import { errorMessage } from "@parley/contracts";

import { type Check, type DoctorContext, error, type Finding, notRunning, ok, warning } from "./finding.ts";

const timeoutMs = 2_000;
const oldestRedis = "6.2";
const oldestNats = "2.9";

interface ServerKind {
  readonly id: "postgres" | "redis" | "nats";
  readonly name: string;
  readonly defaultPort: number;
  /** The environment variable that contains the URL of the server. */
  readonly variable: string;
  /** A file in the data folder that contains the port of a private server. */
  readonly portFile: string;
  /** The command that starts a server at this address. */
  readonly start: (address: Address) => string;
}

const postgres: ServerKind = {
  id: "postgres",
  name: "PostgreSQL",
  defaultPort: 5432,
  variable: "DATABASE_URL",
  portFile: "postgres/postmaster.pid",
  start: ({ port }) => `pg_ctl start -D <its data folder> -o "-p ${port}"`,
};
const redis: ServerKind = {
  id: "redis",
  name: "Redis",
  defaultPort: 6379,
  variable: "REDIS_URL",
  portFile: "redis/redis.conf",
  start: ({ port }) => `redis-server --port ${port} --appendonly yes --maxmemory-policy noeviction`,
};
const nats: ServerKind = {
  id: "nats",
  name: "NATS",
  defaultPort: 4222,
  variable: "NATS_URL",
  portFile: "nats/nats.conf",
  start: ({ port }) => `nats-server --port ${port}`,
};

/** One check per server. Skipped when the doctor checks a cluster by its URL, whose servers are not known. */
export const serverChecks: readonly Check[] = [
  { id: "postgres", run: (context) => checkServer(context, postgres, context.home.state?.databaseUrl, probePostgres) },
  { id: "redis", run: (context) => checkServer(context, redis, context.home.state?.redisUrl, probeRedis) },
  { id: "nats", run: (context) => checkServer(context, nats, context.home.state?.natsUrl, probeNats) },
];

async function checkServer(
  { home, explicitUrl }: DoctorContext,
  kind: ServerKind,
  url: string | undefined,
  probe: (address: Address) => Promise<Finding>,
): Promise<Finding[]> {
  if (explicitUrl) return [];
  if (url === undefined) return [notRunning(kind.id)];
  const address = addressOf(url, kind.defaultPort);
  try {
    return [await probe(address)];
  } catch (failure) {
    return [unreachable(kind, address, errorMessage(failure), isPrivate(home.path, kind, address))];
  }
}

/** The error of a server that does not respond. Its fix differs: the supervisor restarts private servers, the operator all others. */
export function unreachable(
  kind: Pick<ServerKind, "id" | "name" | "variable" | "start">,
  address: Address,
  reason: string,
  privateServer: boolean,
): Finding {
  const where = `${kind.name} at ${address.host}:${address.port}`;
  return privateServer
    ? error(
        kind.id,
        `${where}: ${reason}; the supervisor should have restarted it`,
        `parley logs --service ${kind.id} --since 10m`,
      )
    : error(kind.id, `${where} (${kind.variable}): ${reason}`, kind.start(address));
}

/** A private server is one that the supervisor of this data folder started. */
function isPrivate(home: string, { portFile }: ServerKind, { host, port }: Address): boolean {
  const file = join(home, portFile);
  return host === "127.0.0.1" && existsSync(file) && new RegExp(`\\b${port}\\b`).test(readFileSync(file, "utf8"));
}

/** SSLRequest of the PostgreSQL protocol: the server responds with one byte, `S` or `N`, before the login. */
async function probePostgres(address: Address): Promise<Finding> {
  const request = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
  const response = await exchange(address, request, (received) => received.length > 0, timeoutMs);
  const status = response.toString("latin1", 0, 1);
  return status === "S" || status === "N"
    ? ok("postgres", `PostgreSQL answers at ${address.host}:${address.port}`)
    : error("postgres", `the server at ${address.host}:${address.port} is not PostgreSQL`, "check DATABASE_URL");
}

async function probeRedis(address: Address): Promise<Finding> {
  const login =
    address.password === "" ? [] : [["AUTH", ...(address.user === "" ? [] : [address.user]), address.password]];
  const request = [...login, ["PING"], ["INFO"]].map(respCommand).join("");
  const isComplete = (received: Buffer) => redisAnswered(received.toString("utf8"));
  const response = await exchange(address, request, isComplete, timeoutMs);
  return redisFinding(response.toString("utf8"), `${address.host}:${address.port}`);
}

/** A command in the Redis protocol (RESP). */
export function respCommand(args: readonly string[]): string {
  return `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join("")}`;
}

/** True when the INFO text is complete or an error arrived. */
export function redisAnswered(text: string): boolean {
  if (/^-/m.test(text)) return true;
  const infoHeader = /\+PONG\r\n\$(\d+)\r\n/.exec(text);
  if (infoHeader === null) return false;
  const body = text.slice(infoHeader.index + infoHeader[0].length);
  return Buffer.byteLength(body) >= Number(infoHeader[1]) + 2;
}

/** Evaluates the responses to `PING` and `INFO`: the version and the eviction policy. `where`: host and port. */
export function redisFinding(text: string, where: string): Finding {
  const errorReply = /^-(.*)$/m.exec(text.replaceAll("\r", ""))?.[1];
  if (errorReply !== undefined)
    return error("redis", `Redis at ${where} refuses: ${errorReply}`, "check the login in REDIS_URL");
  const field = (name: string): string => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(text)?.[1] ?? "";
  const version = field("redis_version");
  const policy = field("maxmemory_policy");
  if (policy !== "" && policy !== "noeviction") {
    return error(
      "redis",
      `Redis ${version} at ${where} evicts data when memory is full (maxmemory-policy ${policy})`,
      "redis-cli config set maxmemory-policy noeviction   (and the same line in redis.conf)",
    );
  }
  if (olderThan(version, oldestRedis)) {
    return error("redis", `Redis ${version} at ${where} is too old`, `install Redis ${oldestRedis} or newer`);
  }
  if (policy === "")
    return warning(
      "redis",
      `Redis ${version} at ${where} does not report its eviction policy`,
      "set maxmemory-policy to noeviction",
    );
  return ok("redis", `Redis ${version} answers at ${where}, noeviction`);
}

/** NATS sends its version before any login. */
async function probeNats(address: Address): Promise<Finding> {
  const response = await exchange(address, "", (received) => received.includes("\r\n"), timeoutMs);
  return natsFinding(response.toString("utf8"), `${address.host}:${address.port}`);
}

/** Evaluates the INFO line, which a NATS server sends first. `where`: host and port. */
export function natsFinding(infoLine: string, where: string): Finding {
  const version = /^INFO .*"version":"([^"]+)"/.exec(infoLine)?.[1];
  if (version === undefined) return error("nats", `the server at ${where} is not NATS`, "check NATS_URL");
  return olderThan(version, oldestNats)
    ? error("nats", `NATS ${version} at ${where} is too old`, `install nats-server ${oldestNats} or newer`)
    : ok("nats", `NATS ${version} answers at ${where}`);
}

/** Compares versions by their numbers; a version without numbers counts as old. */
export function olderThan(version: string, minimum: string): boolean {
  const [have, need] = [version, minimum].map((text) => text.split(".").map((part) => Number.parseInt(part, 10) || 0));
  for (const [index, number] of (need ?? []).entries()) {
    const installed = have?.[index] ?? 0;
    if (installed !== number) return installed < number;
  }
  return false;
}

/** The parts of a server's URL; empty `user` and `password` when the URL has none. */
export interface Address {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly user: string;
  readonly password: string;
}

/** Parses a server's URL. Throws when it is invalid. */
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
  override readonly name = "NoResponseError";
}

/**
 * Sends `request` and returns the data received until `isComplete` is true. Rejects when the server is unreachable, disconnects or does not
 * respond within `timeoutMs` (NoResponseError).
 */
export async function exchange(
  address: Address,
  request: Uint8Array | string,
  isComplete: (received: Buffer) => boolean,
  timeoutMs: number,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const { host, port } = address;
  const socket: Socket = address.tls ? connectTls({ host, port, servername: host }) : connectTcp({ host, port });
  let connected = false;
  let received = Buffer.alloc(0);
  const rejectLate = () =>
    reject(
      connected
        ? new NoResponseError("it accepts connections but does not answer")
        : new Error("it did not accept a connection in time"),
    );
  // If this process was blocked, its timers run before it reads pending data; `setImmediate` lets it read the data first.
  const timer = setTimeout(() => setImmediate(rejectLate), timeoutMs);
  socket.once(address.tls ? "secureConnect" : "connect", () => {
    connected = true;
    if (request.length > 0) socket.write(request);
  });
  socket.on("data", (chunk) => {
    received = Buffer.concat([received, chunk]);
    if (isComplete(received)) resolve(received);
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
