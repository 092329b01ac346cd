// The three backing servers of a cluster: given by their addresses, handed in running, or started and kept here.

import { randomBytes } from "node:crypto";
import { join } from "node:path";

import { natsPermissions, roles, type Role } from "@parley/contracts";

import type { Environment } from "../environment.ts";
import type { Home } from "../home.ts";
import { findServer } from "../servers/locate.ts";
import { startNats, type NatsServer, type NatsUser } from "../servers/nats.ts";
import { startPostgres, type PostgresServer, type PostgresUrls } from "../servers/postgres.ts";
import type { LogSink, ServerProcess } from "../servers/process.ts";
import { startRedis, type RedisServer } from "../servers/redis.ts";
import { superviseServer, type SupervisedServer } from "./supervised-server.ts";
import { LogFile } from "./log-file.ts";
import type { WriteTrouble } from "./write-trouble.ts";

/** Servers that run already and that somebody else stops. */
export interface GivenServers {
  readonly postgres?: PostgresUrls;
  readonly redis?: { readonly url: string };
  /** Started with the users of `natsUsers(namespace)`. */
  readonly nats?: { urlFor(user: string): string };
}

export interface Backing {
  readonly ownerUrl: string;
  readonly storeUrl: string;
  readonly redisUrl: string;
  readonly natsUrls: Readonly<Record<Role, string>>;
  /** Those that are ours; null where the server is somebody else's. */
  readonly postgres: SupervisedServer<PostgresServer> | null;
  readonly redis: SupervisedServer<RedisServer> | null;
  readonly nats: SupervisedServer<NatsServer> | null;
  stop(graceMs?: number): Promise<void>;
}

export interface BackingOptions {
  readonly home: Home;
  /** Where unpacked packages are kept. */
  readonly serversDir: string;
  readonly namespace: string;
  readonly environment: Environment;
  readonly given: GivenServers;
  readonly say: LogSink;
  /** Where a log that cannot be written is reported. */
  readonly trouble: WriteTrouble;
}

/** One NATS user a role, with a fresh password and exactly the role's permissions. */
export function natsUsers(namespace: string): NatsUser[] {
  return roles.map((role) => ({
    user: role,
    password: randomBytes(18).toString("base64url"),
    permissions: natsPermissions(role, namespace),
  }));
}

/** Brings up what is missing, all at the same time. When one fails, the others are stopped again. */
export async function startBacking(options: BackingOptions): Promise<Backing> {
  const [postgres, redis, nats] = await Promise.allSettled([
    findPostgres(options),
    findRedis(options),
    findNats(options),
  ]);
  const stop = async (graceMs?: number): Promise<void> => {
    const all = [postgres, redis, nats].filter((one) => one.status === "fulfilled");
    await Promise.all(all.map((one) => one.value.stop(graceMs)));
  };
  for (const one of [postgres, redis, nats]) {
    if (one.status === "fulfilled") continue;
    await stop();
    throw one.reason;
  }
  if (postgres.status !== "fulfilled" || redis.status !== "fulfilled" || nats.status !== "fulfilled")
    throw new Error("unreachable");
  return {
    ...postgres.value.address,
    redisUrl: redis.value.address,
    natsUrls: nats.value.address,
    postgres: postgres.value.kept,
    redis: redis.value.kept,
    nats: nats.value.kept,
    stop,
  };
}

/** One backing server: where it is, and what keeps it alive when it is ours. */
interface Found<A, S extends ServerProcess> {
  readonly address: A;
  readonly kept: SupervisedServer<S> | null;
  stop(graceMs?: number): Promise<void>;
}

async function findPostgres(options: BackingOptions): Promise<Found<PostgresUrls, PostgresServer>> {
  const { DATABASE_URL, DATABASE_OWNER_URL } = options.environment;
  if (options.given.postgres !== undefined) return elsewhere(options.given.postgres);
  if (isSet(DATABASE_URL)) {
    options.say(`PostgreSQL: the one of DATABASE_URL`);
    if (isSet(DATABASE_OWNER_URL)) return elsewhere({ ownerUrl: DATABASE_OWNER_URL, storeUrl: DATABASE_URL });
    options.say(
      "DATABASE_OWNER_URL is not set: the store uses the same role as the migrations and may change the schema",
    );
    return elsewhere({ ownerUrl: DATABASE_URL, storeUrl: DATABASE_URL });
  }
  const dataDir = join(options.home.path, "postgres");
  options.say("PostgreSQL: a private one");
  return ours(
    options,
    "postgres",
    ({ ownerUrl, storeUrl }) => ({ ownerUrl, storeUrl }),
    (port, log) => startPostgres({ dataDir, port, log }),
  );
}

async function findRedis(options: BackingOptions): Promise<Found<string, RedisServer>> {
  const { REDIS_URL } = options.environment;
  if (options.given.redis !== undefined) return elsewhere(options.given.redis.url);
  if (isSet(REDIS_URL)) {
    options.say("Redis: the one of REDIS_URL");
    return elsewhere(REDIS_URL);
  }
  const dataDir = join(options.home.path, "redis");
  const cacheDir = options.serversDir;
  await findServer("redis", cacheDir, options.say);
  options.say("Redis: a private one");
  return ours(
    options,
    "redis",
    ({ url }) => url,
    (port, log) => startRedis({ dataDir, port, log, cacheDir }),
  );
}

async function findNats(options: BackingOptions): Promise<Found<Readonly<Record<Role, string>>, NatsServer>> {
  const { NATS_URL } = options.environment;
  const { nats } = options.given;
  if (nats !== undefined) return elsewhere(forEachRole((role) => nats.urlFor(role)));
  if (isSet(NATS_URL)) {
    options.say("NATS: the one of NATS_URL, with its one login for every service");
    return elsewhere(forEachRole(() => NATS_URL));
  }
  const dataDir = join(options.home.path, "nats");
  const cacheDir = options.serversDir;
  const users = natsUsers(options.namespace);
  await findServer("nats", cacheDir, options.say);
  options.say("NATS: a private one");
  return ours(
    options,
    "nats",
    (server) => forEachRole((role) => server.urlFor(role)),
    (port, log) => startNats({ dataDir, port, log, users, cacheDir }),
  );
}

function forEachRole(url: (role: Role) => string): Record<Role, string> {
  return Object.fromEntries(roles.map((role) => [role, url(role)])) as Record<Role, string>;
}

function elsewhere<A>(address: A): Found<A, never> {
  return { address, kept: null, stop: async () => {} };
}

async function ours<A, S extends ServerProcess>(
  options: BackingOptions,
  name: string,
  addressOf: (server: S) => A,
  start: (port: number | undefined, log: LogSink) => Promise<S>,
): Promise<Found<A, S>> {
  const file = new LogFile(join(options.home.logs, `${name}.log`), { trouble: options.trouble });
  const log = (line: string): void => file.write(Buffer.from(`${line}\n`));
  try {
    const kept = await superviseServer((port) => start(port, log), options.say);
    const stop = async (graceMs?: number): Promise<void> => {
      await kept.stop(graceMs);
      file[Symbol.dispose]();
    };
    return { address: addressOf(kept.current()), kept, stop };
  } catch (error) {
    file[Symbol.dispose]();
    throw error;
  }
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== "";
}
