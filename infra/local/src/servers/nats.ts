// A private NATS server on loopback, without JetStream. The caller passes the users and their permissions.

import { join } from "node:path";

import { LocalError } from "../errors.ts";
import { writeIfChanged, ensurePrivateFolder } from "../home.ts";
import { findServer } from "./locate.ts";
import { startOnPort } from "./ports.ts";
import { endOrphanedServer, launch, type LogSink, type ServerProcess } from "./process.ts";

export interface NatsUser {
  readonly user: string;
  readonly password: string;
  /** The subjects the user may publish and subscribe to. Without it, all of them. */
  readonly permissions?: {
    readonly publish: readonly string[];
    readonly subscribe: readonly string[];
    /** Permits the user to reply to requests. Default: false. */
    readonly allowResponses?: boolean;
  };
}

export interface NatsOptions {
  /** Created if missing; contains the configuration with the passwords, mode 0600. */
  readonly dataDir: string;
  /** Loopback port; a free one by default. */
  readonly port?: number | undefined;
  readonly log?: LogSink;
  /** Paths of PEM files: the server then requires TLS, and with `clientCa` also a certificate of each client. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly clientCa?: string };
  /** Seconds between two pings; a client that misses three is dropped. Default: that of the server, two minutes. */
  readonly pingIntervalSeconds?: number;
  /** Without users, the server requires no login. */
  readonly users?: readonly NatsUser[];
  /** Where a downloaded Debian package is unpacked; `.parley/servers` of the repository by default. */
  readonly cacheDir?: string;
}

export interface NatsServer extends ServerProcess {
  /** Without credentials. */
  readonly url: string;
  /** With the credentials of one of its users. */
  urlFor(user: string): string;
}

/** Starts NATS. It stores no data: the data folder contains only its configuration. */
export async function startNats(options: NatsOptions): Promise<NatsServer> {
  const dataDir = ensurePrivateFolder(options.dataDir);
  const users = options.users ?? [];
  const command = await findServer("nats", options.cacheDir, options.log);
  await endOrphanedServer(dataDir, "SIGTERM");

  return startOnPort(options.port, async (port) => {
    const file = join(dataDir, "nats.conf");
    writeIfChanged(file, JSON.stringify(natsConfiguration(port, users, options), null, 2));
    const server = await launch({
      name: "NATS",
      command,
      args: ["--config", file],
      env: { PATH: process.env.PATH ?? "/usr/bin:/bin", TZ: "UTC" },
      port,
      dataDir,
      ready: /Server is ready/,
      stopSignal: "SIGTERM",
      log: options.log,
    });
    const urlFor = (user: string): string => {
      const found = users.find((one) => one.user === user);
      if (found === undefined) throw new LocalError("bad_option", `NATS was started without a user "${user}".`);
      return `nats://${encodeURIComponent(user)}:${encodeURIComponent(found.password)}@127.0.0.1:${port}`;
    };
    return { ...server, url: `nats://127.0.0.1:${port}`, urlFor };
  });
}

/** The server's configuration; NATS accepts JSON. */
function natsConfiguration(
  port: number,
  users: readonly NatsUser[],
  { tls, pingIntervalSeconds }: NatsOptions,
): Record<string, unknown> {
  const authorization = {
    users: users.map(({ user, password, permissions }) => ({
      user,
      password,
      ...(permissions === undefined
        ? {}
        : {
            permissions: {
              publish: { allow: permissions.publish },
              subscribe: { allow: permissions.subscribe },
              ...(permissions.allowResponses === true ? { allow_responses: true } : {}),
            },
          }),
    })),
  };
  return {
    host: "127.0.0.1",
    port,
    max_payload: 1_048_576,
    ...(pingIntervalSeconds === undefined ? {} : { ping_interval: `${pingIntervalSeconds}s`, ping_max: 2 }),
    ...(users.length === 0 ? {} : { authorization }),
    ...(tls === undefined
      ? {}
      : {
          tls: {
            cert_file: tls.cert,
            key_file: tls.key,
            ...(tls.clientCa === undefined ? {} : { ca_file: tls.clientCa, verify: true }),
          },
        }),
  };
}
