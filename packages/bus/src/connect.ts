// Opens the one NATS connection of a process and watches it. What is said on it is the business of `bus.ts`.
import { connect, type NatsConnection } from "nats";
import { inboxPrefix, type Role } from "@parley/contracts";

export interface BusLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface ConnectOptions {
  /** `nats://user:password@host:port`; several, separated by commas, for a cluster. */
  url: string;
  role: Role;
  /** Shown in the server's monitoring: the replica. */
  name: string;
  log: BusLog;
}

/** The connection, and whether it is up at this moment. */
export interface Link {
  readonly connection: NatsConnection;
  connected: boolean;
}

/** Connects, waiting for as long as the server is away. A wrong password is an error at once. */
export async function openConnection(options: ConnectOptions): Promise<Link> {
  const { servers, user, pass } = splitCredentials(options.url);
  const connection = await connect({
    servers,
    ...(user === undefined ? {} : { user, pass: pass ?? "" }),
    name: options.name,
    inboxPrefix: inboxPrefix(options.role),
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
    reconnectJitter: 50,
    waitOnFirstConnect: true,
    // Without it every request captures a stack trace, a tenth of its cost.
    noAsyncTraces: true,
    // The client's default notices a silent server only after four minutes.
    pingInterval: 20_000,
  });
  const link: Link = { connection, connected: true };
  void watch(link, options.log);
  return link;
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

function splitCredentials(url: string): { servers: string[]; user?: string; pass?: string } {
  const urls = url.split(",").map((each) => new URL(each.includes("://") ? each : `nats://${each}`));
  const servers = urls.map((each) => each.host);
  const first = urls[0];
  if (first === undefined || first.username === "") return { servers };
  return { servers, user: decodeURIComponent(first.username), pass: decodeURIComponent(first.password) };
}
