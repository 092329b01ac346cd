// Opens the NATS connection of a process and watches its state. It does not depend on what `bus.ts` sends over it.
import { isIP } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import {
  AuthorizationError,
  connect,
  nkeyAuthenticator,
  TimeoutError,
  type Authenticator,
  type NatsConnection,
  type NodeConnectionOptions,
} from "nats";
import { inboxPrefix, type Role } from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import { parseBusUrl } from "./servers.ts";
import { explainLinkFailure, type TlsFiles } from "./tls.ts";

export interface BusLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface ConnectOptions {
  /** `nats://user:password@host:port`, or `tls://…` to require TLS; several, separated by commas, for a cluster. */
  url: string;
  /** Any file requires TLS, regardless of the scheme. */
  tls?: TlsFiles;
  /**
   * The seed of an NKey (`SU…`), read at each connection so that it may change; undefined: the login of the URL. Throws while it cannot
   * be read.
   */
  seed?: () => string | undefined;
  role: Role;
  /** The replica's name, shown in the server's monitoring. */
  name: string;
  log: BusLog;
  /** Called with the reason of each failed attempt of the first connection. */
  onWaiting?: (reason: string) => void;
  /** Called after each reconnection. */
  onReconnect?: () => void;
}

/** The connection and its current state. */
export interface Connection {
  readonly connection: NatsConnection;
  connected: boolean;
  /** How many connections there were, with this one. */
  count: number;
  /** Whether TLS protects it. */
  readonly encrypted: boolean;
}

/** The environment variable of the CA file, for messages. */
const busCaVariable = "PARLEY_NATS_CA_FILE";

/** Time limit for the login after the connection is accepted. */
const attemptMs = 10_000;
const pauseMs = 100;
/** Longer pause for silent servers, which keep the socket of each attempt. */
const silentPauseMs = 5_000;
/** Errors that are logged for each connection: subjects can contain ids. */
const maxReported = 100;

/** Connects; waits while no server is usable. Throws when the login is refused. */
export async function openConnection(options: ConnectOptions): Promise<Connection> {
  const connection = await connectFirst(options);
  const { info } = connection;
  const encrypted = tlsOf(options) !== undefined || info?.tls_required === true || info?.tls_available === true;
  const link: Connection = { connection, connected: true, count: 1, encrypted };
  void watch(link, options);
  return link;
}

/** Retries here, because the client's own retries do not report the reason. */
async function connectFirst(options: ConnectOptions): Promise<NatsConnection> {
  const { hosts } = parseBusUrl(options.url);
  const tls = tlsOf(options);
  for (;;) {
    try {
      return await connect({
        servers: hosts,
        ...omitUndefined({ tls }),
        authenticator: authenticatorOf(options),
        // A server that knows a new key refuses the old one until the seed's file has changed, too.
        ignoreAuthErrorAbort: options.seed !== undefined,
        name: options.name,
        inboxPrefix: inboxPrefix(options.role),
        timeout: attemptMs,
        maxReconnectAttempts: -1,
        reconnectTimeWait: 100,
        reconnectJitter: 50,
        // Without it every request captures a stack trace, which takes a tenth of its time.
        noAsyncTraces: true,
        // A silent server is detected after three intervals; the client's default takes four minutes.
        pingInterval: 2_000,
      });
    } catch (error) {
      // A busy server may end a slow login; that is not a refusal.
      if (error instanceof AuthorizationError && !/timeout/i.test(error.message)) throw error;
      options.onWaiting?.(`${reasonOf(error)} (${hosts.join(", ")})`);
      await delay(error instanceof TimeoutError ? silentPauseMs : pauseMs * (1 + Math.random() / 2));
    }
  }
}

/** Called for each connection: with a new seed after its file has changed. */
function authenticatorOf({ url, seed }: ConnectOptions): Authenticator {
  const { user, pass = "" } = parseBusUrl(url);
  return (nonce) => {
    const current = seed?.();
    if (current !== undefined) return nkeyAuthenticator(Buffer.from(current))(nonce);
    return user === undefined ? undefined : { user, pass };
  };
}

function reasonOf(error: unknown): string {
  const reason = explainLinkFailure(error, busCaVariable);
  return reason === "server does not support 'tls'"
    ? "the server offers no TLS, but PARLEY_NATS_URL requires it: nothing was sent"
    : reason;
}

/** The client's TLS options; undefined when TLS is not required. With them it sends nothing to a server without TLS. */
function tlsOf({ url, tls = {} }: ConnectOptions): NodeConnectionOptions["tls"] {
  const { hosts, tls: demanded } = parseBusUrl(url);
  if (!demanded && Object.keys(tls).length === 0) return undefined;
  const names = hosts.map((host) => new URL(`nats://${host}`).hostname.replace(/^\[|\]$/g, ""));
  return { ...tls, ...identityOf(names) };
}

/**
 * For a server given by its IP address the client passes no host to Node, which then verifies the certificate for "localhost". The
 * certificate must contain one of the addresses instead.
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

async function watch(link: Connection, { log, onReconnect }: ConnectOptions): Promise<void> {
  /** The server repeats a refusal for each message; one line for each connection is enough. */
  const reported = new Set<string>();
  for await (const status of link.connection.status()) {
    switch (status.type) {
      case "disconnect":
        link.connected = false;
        log.warn({ server: status.server }, "bus disconnected: reconnecting");
        break;
      case "reconnect":
        link.connected = true;
        link.count += 1;
        reported.clear();
        log.info({ server: status.server }, "bus reconnected");
        onReconnect?.();
        break;
      case "error":
        if (reported.has(status.error.message) || reported.size >= maxReported) break;
        reported.add(status.error.message);
        log.error({ err: status.error }, "bus error");
        break;
      default:
        break;
    }
  }
}
