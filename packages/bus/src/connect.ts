// Opens the one NATS connection of a process and watches it. What is sent over it is the business of `bus.ts`.
import { isIP } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { AuthorizationError, connect, TimeoutError, type NatsConnection, type NodeConnectionOptions } from "nats";
import { inboxPrefix, type Role } from "@parley/contracts";
import { readBusServers } from "./servers.ts";
import { explainLinkFailure, type TlsFiles } from "./tls.ts";

export interface BusLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface ConnectOptions {
  /** `nats://user:password@host:port`, or `tls://…` where TLS is a condition; several, separated by commas, for a cluster. */
  url: string;
  /** Naming a file makes TLS a condition, regardless of the scheme. */
  tls?: TlsFiles;
  role: Role;
  /** Shown in the server's monitoring: the replica. */
  name: string;
  log: BusLog;
  /** Called with the reason of each failed attempt to connect for the first time. */
  onWaiting?: (reason: string) => void;
}

/** The connection, and whether it is up at this moment. */
export interface Link {
  readonly connection: NatsConnection;
  connected: boolean;
  /** Whether TLS protects it. */
  readonly encrypted: boolean;
}

/** The variable that names the CA, for messages. */
const busCaVariable = "PARLEY_NATS_CA_FILE";

/** How long a server that accepts a connection may take to let us in. */
const attemptMs = 10_000;
const pauseMs = 100;
/** A server that accepts connections and stays silent keeps the socket of each attempt: fewer attempts. */
const silentPauseMs = 5_000;

/** Connects, waiting for as long as no server can be used. A refused login is thrown. */
export async function openConnection(options: ConnectOptions): Promise<Link> {
  const connection = await connectFirst(options);
  const { info } = connection;
  const encrypted = tlsOf(options) !== undefined || info?.tls_required === true || info?.tls_available === true;
  const link: Link = { connection, connected: true, encrypted };
  void watch(link, options.log);
  return link;
}

/** The client can wait by itself, but then it keeps the reason to itself. */
async function connectFirst(options: ConnectOptions): Promise<NatsConnection> {
  const { hosts, user, pass } = readBusServers(options.url);
  const tls = tlsOf(options);
  for (;;) {
    try {
      return await connect({
        servers: hosts,
        ...(user === undefined ? {} : { user, pass: pass ?? "" }),
        ...(tls === undefined ? {} : { tls }),
        name: options.name,
        inboxPrefix: inboxPrefix(options.role),
        timeout: attemptMs,
        maxReconnectAttempts: -1,
        reconnectTimeWait: 100,
        reconnectJitter: 50,
        // Without it every request captures a stack trace, a tenth of its cost.
        noAsyncTraces: true,
        // The client's default notices a silent server only after four minutes.
        pingInterval: 20_000,
      });
    } catch (error) {
      // A server that is busy may also end a login that took too long; that is no refusal.
      if (error instanceof AuthorizationError && !/timeout/i.test(error.message)) throw error;
      options.onWaiting?.(`${reasonOf(error)} (${hosts.join(", ")})`);
      await delay(error instanceof TimeoutError ? silentPauseMs : pauseMs * (1 + Math.random() / 2));
    }
  }
}

function reasonOf(error: unknown): string {
  const reason = explainLinkFailure(error, busCaVariable);
  return reason === "server does not support 'tls'"
    ? "the server offers no TLS and PARLEY_NATS_URL demands it: nothing was sent to it"
    : reason;
}

/** The client's TLS options; undefined where TLS is not a condition. With them it sends nothing to a server without TLS. */
function tlsOf({ url, tls = {} }: ConnectOptions): NodeConnectionOptions["tls"] {
  const { hosts, tls: demanded } = readBusServers(url);
  if (!demanded && Object.keys(tls).length === 0) return undefined;
  const names = hosts.map((host) => new URL(`nats://${host}`).hostname.replace(/^\[|\]$/g, ""));
  return { ...tls, ...identityOf(names) };
}

/**
 * The client names no host to Node for a server given by its IP address, and Node then verifies the certificate for
 * "localhost". Such a certificate has to name one of the addresses instead.
 */
function identityOf(names: readonly string[]): object {
  const addresses = names.filter((name) => isIP(name) !== 0);
  return {
    checkServerIdentity: (name: string, certificate: PeerCertificate): Error | undefined => {
      if (name !== "localhost" || names.includes("localhost")) return checkServerIdentity(name, certificate);
      const faults = addresses.map((address) => checkServerIdentity(address, certificate));
      return faults.includes(undefined) ? undefined : (faults[0] ?? checkServerIdentity(name, certificate));
    },
  };
}

async function watch(link: Link, log: BusLog): Promise<void> {
  for await (const status of link.connection.status()) {
    switch (status.type) {
      case "disconnect":
        link.connected = false;
        log.warn({ server: status.server }, "bus disconnected; reconnecting");
        break;
      case "reconnect":
        link.connected = true;
        log.info({ server: status.server }, "bus connected again");
        break;
      case "error":
        log.error({ err: status.error }, "bus error");
        break;
      default:
        break;
    }
  }
}
