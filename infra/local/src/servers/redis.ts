// A private Redis (or Valkey) on loopback, with an append-only file, passwords and no eviction. agent-core gets a user with the rights it needs.

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { redisRules, redisUser } from "@parley/contracts";

import { writeIfChanged, ensurePrivateFolder } from "../home.ts";
import { findServer } from "./locate.ts";
import { startOnPort } from "./ports.ts";
import { endOrphanedServer, launch, type LogSink, type ServerProcess } from "./process.ts";

export interface RedisOptions {
  /** Created if missing; contains the append-only file and the configuration with the password (mode 0600). */
  readonly dataDir: string;
  /** Creates a user for agent-core that may access only the keys of this namespace. */
  readonly namespace?: string;
  /** Loopback port; a free one by default. */
  readonly port?: number | undefined;
  readonly log?: LogSink;
  /** The folder for unpacked Debian packages; `.parley/servers` of the repository by default. */
  readonly cacheDir?: string;
}

export interface RedisServer extends ServerProcess {
  /** With the login of the user `default`, who has all rights. */
  readonly url: string;
  /** With the login of agent-core; without a namespace the same as `url`. */
  readonly serviceUrl: string;
}

/** Starts Redis with this data folder. Passwords are generated at the first start and stored in it. */
export async function startRedis(options: RedisOptions): Promise<RedisServer> {
  const dataDir = ensurePrivateFolder(options.dataDir);
  const command = await findServer("redis", options.cacheDir, options.log);
  await endOrphanedServer(dataDir, "SIGTERM");
  const password = readOrCreatePassword(join(dataDir, "password"));
  const { namespace } = options;
  const servicePassword = namespace === undefined ? null : readOrCreatePassword(join(dataDir, `password-${redisUser}`));
  const users = servicePassword === null || namespace === undefined ? [] : [serviceUser(servicePassword, namespace)];

  return startOnPort(options.port, async (port) => {
    const file = join(dataDir, "redis.conf");
    writeIfChanged(file, configuration(dataDir, port, password, users));
    const server = await launch({
      name: "Redis",
      command,
      args: [file],
      env: { PATH: process.env.PATH ?? "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" },
      port,
      dataDir,
      ready: /ready to accept connections/i,
      stopSignal: "SIGTERM",
      log: options.log,
    });
    const url = `redis://:${password}@127.0.0.1:${port}`;
    return {
      ...server,
      url,
      serviceUrl: servicePassword === null ? url : `redis://${redisUser}:${servicePassword}@127.0.0.1:${port}`,
    };
  });
}

/** The line of redis.conf that defines the user of agent-core. */
function serviceUser(password: string, namespace: string): string {
  return ["user", redisUser, "on", `>${password}`, ...redisRules(namespace)].join(" ");
}

function configuration(dataDir: string, port: number, password: string, users: readonly string[]): string {
  return [
    "bind 127.0.0.1",
    `port ${port}`,
    `requirepass ${password}`,
    ...users,
    `dir ${JSON.stringify(dataDir)}`,
    "daemonize no",
    'logfile ""',
    'save ""',
    "appendonly yes",
    "appendfsync everysec",
    "maxmemory-policy noeviction",
    "",
  ].join("\n");
}

function readOrCreatePassword(file: string): string {
  if (!existsSync(file)) writeFileSync(file, randomBytes(24).toString("base64url"), { mode: 0o600 });
  return readFileSync(file, "utf8").trim();
}
