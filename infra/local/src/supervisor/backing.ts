// The three backing servers of a cluster: external ones, running ones from the caller, or private ones that it starts and supervises. A
// supervised server restarts after an unexpected exit with the same port and data.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

import { errorMessage, natsPermissions, type Role, roles } from "@parley/contracts";

import { isSet, type Environment } from "../environment.ts";
import type { Home } from "../home.ts";
import { findServer } from "../servers/locate.ts";
import { type NatsServer, type NatsUser, startNats } from "../servers/nats.ts";
import { type PostgresServer, type PostgresUrls, startPostgres } from "../servers/postgres.ts";
import type { LogSink, ServerProcess } from "../servers/process.ts";
import { type RedisServer, startRedis } from "../servers/redis.ts";
import { LogFile, type WriteTrouble } from "./log-file.ts";
import { Backoff } from "./replica.ts";

/** Servers that run already; their owner stops them. */
export interface GivenServers {
  readonly postgres?: PostgresUrls;
  /** `serviceUrl`: the login of agent-core, if it is another one. */
  readonly redis?: { readonly url: string; readonly serviceUrl?: string };
  /** Started with the users of `natsUsers(namespace)`. */
  readonly nats?: { urlFor(user: string): string };
}

export interface Backing {
  readonly ownerUrl: string;
  readonly storeUrl: string;
  /** With the rights of agent-core. */
  readonly redisUrl: string;
  /** With all rights; the same as `redisUrl` for an external server. */
  readonly redisAdminUrl: string;
  readonly natsUrls: Readonly<Record<Role, string>>;
  /** The supervised servers; null for an external server. */
  readonly postgres: SupervisedServer<PostgresServer> | null;
  readonly redis: SupervisedServer<RedisServer> | null;
  readonly nats: SupervisedServer<NatsServer> | null;
  stop(graceMs?: number): Promise<void>;
}

export interface BackingOptions {
  readonly home: Home;
  /** The folder for unpacked packages. */
  readonly serversDir: string;
  readonly namespace: string;
  readonly environment: Environment;
  readonly given: GivenServers;
  readonly say: LogSink;
  /** Receives write failures of logs. */
  readonly trouble: WriteTrouble;
}

/** One NATS user per role, with a new password and exactly the role's permissions. */
export function natsUsers(namespace: string): NatsUser[] {
  return roles.map((role) => ({
    user: role,
    password: randomBytes(18).toString("base64url"),
    permissions: natsPermissions(role, namespace),
  }));
}

/** Starts the missing servers in parallel. If one fails, it stops the others. */
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
    redisUrl: redis.value.address.serviceUrl,
    redisAdminUrl: redis.value.address.url,
    natsUrls: nats.value.address,
    postgres: postgres.value.kept,
    redis: redis.value.kept,
    nats: nats.value.kept,
    stop,
  };
}

/** One backing server: its address, and its supervision if it is private. */
interface Found<A, S extends ServerProcess> {
  readonly address: A;
  readonly kept: SupervisedServer<S> | null;
  stop(graceMs?: number): Promise<void>;
}

async function findPostgres(options: BackingOptions): Promise<Found<PostgresUrls, PostgresServer>> {
  const { DATABASE_URL, DATABASE_OWNER_URL } = options.environment;
  if (options.given.postgres !== undefined) return elsewhere(options.given.postgres);
  if (isSet(DATABASE_URL)) {
    options.say(`PostgreSQL: using DATABASE_URL`);
    if (isSet(DATABASE_OWNER_URL)) return elsewhere({ ownerUrl: DATABASE_OWNER_URL, storeUrl: DATABASE_URL });
    options.say("DATABASE_OWNER_URL is not set: the store uses the role of the migrations and may change the schema");
    return elsewhere({ ownerUrl: DATABASE_URL, storeUrl: DATABASE_URL });
  }
  const dataDir = join(options.home.path, "postgres");
  options.say("PostgreSQL: starting a private server");
  return ours(
    options,
    "postgres",
    ({ ownerUrl, storeUrl }) => ({ ownerUrl, storeUrl }),
    (port, log) => startPostgres({ dataDir, port, log }),
  );
}

type RedisUrls = Pick<RedisServer, "url" | "serviceUrl">;

async function findRedis(options: BackingOptions): Promise<Found<RedisUrls, RedisServer>> {
  const { REDIS_URL } = options.environment;
  if (options.given.redis !== undefined)
    return elsewhere({ serviceUrl: options.given.redis.url, ...options.given.redis });
  if (isSet(REDIS_URL)) {
    options.say("Redis: using REDIS_URL");
    return elsewhere({ url: REDIS_URL, serviceUrl: REDIS_URL });
  }
  const dataDir = join(options.home.path, "redis");
  const cacheDir = options.serversDir;
  await findServer("redis", cacheDir, options.say);
  options.say("Redis: starting a private server");
  return ours(
    options,
    "redis",
    ({ url, serviceUrl }) => ({ url, serviceUrl }),
    (port, log) => startRedis({ dataDir, namespace: options.namespace, port, log, cacheDir }),
  );
}

async function findNats(options: BackingOptions): Promise<Found<Readonly<Record<Role, string>>, NatsServer>> {
  const { NATS_URL } = options.environment;
  const { nats } = options.given;
  if (nats !== undefined) return elsewhere(forEachRole((role) => nats.urlFor(role)));
  if (isSet(NATS_URL)) {
    options.say("NATS: using NATS_URL; all services share its login");
    return elsewhere(forEachRole(() => NATS_URL));
  }
  const dataDir = join(options.home.path, "nats");
  const cacheDir = options.serversDir;
  const users = natsUsers(options.namespace);
  await findServer("nats", cacheDir, options.say);
  options.say("NATS: starting a private server");
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

export interface SupervisedServer<S extends ServerProcess> {
  /** The current process. */
  current(): S;
  /** Sends SIGKILL or another terminating signal, and resolves with the new process. */
  restart(signal?: "SIGKILL" | "SIGTERM" | "SIGINT"): Promise<S>;
  stop(graceMs?: number): Promise<void>;
}

/** Starts and supervises a server. The first call of `start` has no port, later ones have its port. */
async function superviseServer<S extends ServerProcess>(
  start: (port?: number) => Promise<S>,
  say: (line: string) => void,
): Promise<SupervisedServer<S>> {
  const backoff = new Backoff();
  const stopping = new AbortController();
  let server = await start();
  let waiters: ((server: S) => void)[] = [];

  const watch = async (): Promise<void> => {
    for (;;) {
      const begun = performance.now();
      const { code, signal } = await server.exited;
      if (stopping.signal.aborted) return;
      const lines = server.lastLines().slice(-3).join("\n");
      say(`${server.name} exited (${signal ?? `exit code ${code}`}); restarting. Its last lines:\n${lines}`);
      const next = await again(server.port, performance.now() - begun);
      if (next === null) return;
      server = next;
      for (const resolve of waiters.splice(0)) resolve(server);
    }
  };
  const again = async (port: number, livedMs: number): Promise<S | null> => {
    for (let lifeMs = livedMs; ; lifeMs = 0) {
      await delay(backoff.nextDelayMs(lifeMs), undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted) return null;
      try {
        return await start(port);
      } catch (error) {
        say(errorMessage(error));
      }
    }
  };
  const watching = watch();

  return {
    current: () => server,
    restart: async (signal = "SIGKILL") => {
      const { promise, resolve } = Promise.withResolvers<S>();
      waiters.push(resolve);
      await server.kill(signal);
      return promise;
    },
    stop: async (graceMs) => {
      stopping.abort();
      waiters = [];
      await server.stop(graceMs);
      await watching;
      await server.stop(graceMs); // a process that started during the stop
    },
  };
}
