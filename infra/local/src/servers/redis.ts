// A private Redis (or Valkey) on loopback, with an append-only file, a password and no eviction.

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { keepFile, privateFolder } from "../home.ts";
import { findServer } from "./locate.ts";
import { onPort } from "./ports.ts";
import { endLeftOver, launch, type LogSink, type ServerProcess } from "./process.ts";

export interface RedisOptions {
  /** Created if missing; contains the append-only file and the configuration with the password (mode 0600). */
  readonly dataDir: string;
  /** Loopback port; a free one by default. */
  readonly port?: number | undefined;
  readonly log?: LogSink;
  /** The folder for unpacked Debian packages; `.parley/servers` of the repository by default. */
  readonly cacheDir?: string;
}

export interface RedisServer extends ServerProcess {
  /** With the password. */
  readonly url: string;
}

/** Starts Redis on a data folder; the password is generated once and stored there. */
export async function startRedis(options: RedisOptions): Promise<RedisServer> {
  const dataDir = privateFolder(options.dataDir);
  const command = await findServer("redis", options.cacheDir, options.log);
  await endLeftOver(dataDir, "SIGTERM");
  const password = keptPassword(join(dataDir, "password"));

  return onPort(options.port, async (port) => {
    const file = join(dataDir, "redis.conf");
    keepFile(file, configuration(dataDir, port, password));
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
    return { ...server, url: `redis://:${password}@127.0.0.1:${port}` };
  });
}

function configuration(dataDir: string, port: number, password: string): string {
  return [
    "bind 127.0.0.1",
    `port ${port}`,
    `requirepass ${password}`,
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

function keptPassword(file: string): string {
  if (!existsSync(file)) writeFileSync(file, randomBytes(24).toString("base64url"), { mode: 0o600 });
  return readFileSync(file, "utf8").trim();
}
