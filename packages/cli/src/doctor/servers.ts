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
  /** The variable that names the server. */
  readonly variable: string;
  /** The configuration file in the data folder, for a private server. */
  readonly ownFile: string;
  /** The command that starts a server at this address. */
  readonly start: (address: Address) => string;
}

const postgres: ServerKind = {
  id: "postgres",
  name: "PostgreSQL",
  defaultPort: 5432,
  variable: "DATABASE_URL",
  ownFile: "postgres/postmaster.pid",
  start: ({ port }) => `pg_ctl start -D <its data folder> -o "-p ${port}"`,
};
const redis: ServerKind = {
  id: "redis",
  name: "Redis",
  defaultPort: 6379,
  variable: "REDIS_URL",
  ownFile: "redis/redis.conf",
  start: ({ port }) => `redis-server --port ${port} --appendonly yes --maxmemory-policy noeviction`,
};
const nats: ServerKind = {
  id: "nats",
  name: "NATS",
  defaultPort: 4222,
  variable: "NATS_URL",
  ownFile: "nats/nats.conf",
  start: ({ port }) => `nats-server --port ${port}`,
};

export const serverChecks: readonly Check[] = [
  { id: "postgres", run: (context) => checkServer(context, postgres, context.home.state?.databaseUrl, askPostgres) },
  { id: "redis", run: (context) => checkServer(context, redis, context.home.state?.redisUrl, askRedis) },
  { id: "nats", run: (context) => checkServer(context, nats, context.home.state?.natsUrl, askNats) },
];

async function checkServer(
  { home, explicitUrl }: DoctorContext,
  kind: ServerKind,
  url: string | undefined,
  ask: (address: Address) => Promise<Finding>,
): Promise<Finding[]> {
  if (explicitUrl) return [];
  if (url === undefined) return [notRunning(kind.id)];
  const address = addressOf(url, kind.defaultPort);
  try {
    return [await ask(address)];
  } catch (failure) {
    return [unreachable(kind, address, errorMessage(failure), isOurs(home.path, kind, address))];
  }
}

/** The supervisor restarts private servers; the operator runs all others. */
export function unreachable(
  kind: Pick<ServerKind, "id" | "name" | "variable" | "start">,
  address: Address,
  why: string,
  ours: boolean,
): Finding {
  const where = `${kind.name} at ${address.host}:${address.port}`;
  return ours
    ? error(
        kind.id,
        `${where}: ${why}; the supervisor should have restarted it`,
        `parley logs --service ${kind.id} --since 10m`,
      )
    : error(kind.id, `${where} (${kind.variable}): ${why}`, kind.start(address));
}

function isOurs(home: string, { ownFile }: ServerKind, { host, port }: Address): boolean {
  const file = join(home, ownFile);
  return host === "127.0.0.1" && existsSync(file) && new RegExp(`\\b${port}\\b`).test(readFileSync(file, "utf8"));
}

/** SSLRequest of the PostgreSQL protocol: every server answers with one letter before any login. */
async function askPostgres(address: Address): Promise<Finding> {
  const request = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
  const answer = await exchange(address, request, (received) => received.length > 0, timeoutMs);
  const letter = answer.toString("latin1", 0, 1);
  return letter === "S" || letter === "N"
    ? ok("postgres", `PostgreSQL answers at ${address.host}:${address.port}`)
    : error("postgres", `the server at ${address.host}:${address.port} is not PostgreSQL`, "check DATABASE_URL");
}

async function askRedis(address: Address): Promise<Finding> {
  const login =
    address.password === "" ? [] : [["AUTH", ...(address.user === "" ? [] : [address.user]), address.password]];
  const say = [...login, ["PING"], ["INFO"]].map(respCommand).join("");
  const answer = await exchange(address, say, (received) => redisAnswered(received.toString("utf8")), timeoutMs);
  return redisFinding(answer.toString("utf8"), `${address.host}:${address.port}`);
}

/** A command in the Redis protocol (RESP). */
export function respCommand(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}

/** True when the INFO text is complete or an error arrived. */
export function redisAnswered(text: string): boolean {
  if (/^-/m.test(text)) return true;
  const head = /\+PONG\r\n\$(\d+)\r\n/.exec(text);
  return head !== null && Buffer.byteLength(text.slice(head.index + head[0].length)) >= Number(head[1]) + 2;
}

export function redisFinding(text: string, where: string): Finding {
  const refused = /^-(.*)$/m.exec(text.replaceAll("\r", ""))?.[1];
  if (refused !== undefined)
    return error("redis", `Redis at ${where} refuses: ${refused}`, "check the login in REDIS_URL");
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
async function askNats(address: Address): Promise<Finding> {
  const answer = await exchange(address, "", (received) => received.includes("\r\n"), timeoutMs);
  return natsFinding(answer.toString("utf8"), `${address.host}:${address.port}`);
}

export function natsFinding(greeting: string, where: string): Finding {
  const version = /^INFO .*"version":"([^"]+)"/.exec(greeting)?.[1];
  if (version === undefined) return error("nats", `the server at ${where} is not NATS`, "check NATS_URL");
  return olderThan(version, oldestNats)
    ? error("nats", `NATS ${version} at ${where} is too old`, `install nats-server ${oldestNats} or newer`)
    : ok("nats", `NATS ${version} answers at ${where}`);
}

/** Compares versions by their numbers; a version without numbers counts as old. */
export function olderThan(version: string, wanted: string): boolean {
  const [have, want] = [version, wanted].map((text) => text.split(".").map((part) => Number.parseInt(part, 10) || 0));
  for (const [index, number] of (want ?? []).entries()) {
    const mine = have?.[index] ?? 0;
    if (mine !== number) return mine < number;
  }
  return false;
}

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
  override readonly name = "NoResponseError";
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
