// The backing services of a cluster: PostgreSQL, Redis and NATS. Each is an external server, one that the caller runs, or a private server,
// which the cluster starts and supervises. A private server restarts after an unexpected exit with the same port and data.

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
import { LogFile, type WriteFailureReporter } from "./log-file.ts";
import { Backoff } from "./replica.ts";

/** Servers that run already; the caller stops them. */
export interface GivenServers {
  readonly postgres?: PostgresUrls;
  /** `serviceUrl`: the login of agent-core, if it is another one. */
  readonly redis?: { readonly url: string; readonly serviceUrl?: string };
  /** RunningCluster with the users of `natsUsers(namespace)`. */
  readonly nats?: { urlFor(user: string): string };
}

export interface BackingServices {
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

export interface BackingServicesOptions {
  readonly home: Home;
  /** The folder for unpacked packages. */
  readonly serversDir: string;
  readonly namespace: string;
  readonly environment: Environment;
  readonly given: GivenServers;
  readonly print: LogSink;
  /** Receives write failures of logs. */
  readonly writeFailures: WriteFailureReporter;
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
export async function startBackingServices(options: BackingServicesOptions): Promise<BackingServices> {
  const [postgres, redis, nats] = await Promise.allSettled([
    findPostgres(options),
    findRedis(options),
    findNats(options),
  ]);
  const stop = async (graceMs?: number): Promise<void> => {
    const all = [postgres, redis, nats].filter((result) => result.status === "fulfilled");
    await Promise.all(all.map((result) => result.value.stop(graceMs)));
  };
  for (const result of [postgres, redis, nats]) {
    if (result.status === "fulfilled") continue;
    await stop();
    throw result.reason;
  }
  if (postgres.status !== "fulfilled" || redis.status !== "fulfilled" || nats.status !== "fulfilled")
    throw new Error("unreachable");
  return {
    ...postgres.value.address,
    redisUrl: redis.value.address.serviceUrl,
    redisAdminUrl: redis.value.address.url,
    natsUrls: nats.value.address,
    postgres: postgres.value.supervised,
    redis: redis.value.supervised,
    nats: nats.value.supervised,
    stop,
  };
}

/** One backing service. `supervised`: null for a server that is not private. */
interface Found<A, S extends ServerProcess> {
  readonly address: A;
  readonly supervised: SupervisedServer<S> | null;
  stop(graceMs?: number): Promise<void>;
}

async function findPostgres(options: BackingServicesOptions): Promise<Found<PostgresUrls, PostgresServer>> {
  const { DATABASE_URL, DATABASE_OWNER_URL } = options.environment;
  if (options.given.postgres !== undefined) return externalServer(options.given.postgres);
  if (isSet(DATABASE_URL)) {
    options.print(`PostgreSQL: using DATABASE_URL`);
    if (isSet(DATABASE_OWNER_URL)) return externalServer({ ownerUrl: DATABASE_OWNER_URL, storeUrl: DATABASE_URL });
    options.print("DATABASE_OWNER_URL is not set: the store uses the role of the migrations and may change the schema");
    return externalServer({ ownerUrl: DATABASE_URL, storeUrl: DATABASE_URL });
  }
  const dataDir = join(options.home.path, "postgres");
  options.print("PostgreSQL: starting a private server");
  return startPrivateServer(
    options,
    "postgres",
    ({ ownerUrl, storeUrl }) => ({ ownerUrl, storeUrl }),
    (port, log) => startPostgres({ dataDir, port, log }),
  );
}

type RedisUrls = Pick<RedisServer, "url" | "serviceUrl">;

async function findRedis(options: BackingServicesOptions): Promise<Found<RedisUrls, RedisServer>> {
  const { REDIS_URL } = options.environment;
  if (options.given.redis !== undefined)
    return externalServer({ serviceUrl: options.given.redis.url, ...options.given.redis });
  if (isSet(REDIS_URL)) {
    options.print("Redis: using REDIS_URL");
    return externalServer({ url: REDIS_URL, serviceUrl: REDIS_URL });
  }
  const dataDir = join(options.home.path, "redis");
  const cacheDir = options.serversDir;
  await findServer("redis", cacheDir, options.print);
  options.print("Redis: starting a private server");
  return startPrivateServer(
    options,
    "redis",
    ({ url, serviceUrl }) => ({ url, serviceUrl }),
    (port, log) => startRedis({ dataDir, namespace: options.namespace, port, log, cacheDir }),
  );
}

async function findNats(options: BackingServicesOptions): Promise<Found<Readonly<Record<Role, string>>, NatsServer>> {
  const { NATS_URL } = options.environment;
  const { nats } = options.given;
  if (nats !== undefined) return externalServer(forEachRole((role) => nats.urlFor(role)));
  if (isSet(NATS_URL)) {
    options.print("NATS: using NATS_URL; all services share its login");
    return externalServer(forEachRole(() => NATS_URL));
  }
  const dataDir = join(options.home.path, "nats");
  const cacheDir = options.serversDir;
  const users = natsUsers(options.namespace);
  await findServer("nats", cacheDir, options.print);
  options.print("NATS: starting a private server");
  return startPrivateServer(
    options,
    "nats",
    (server) => forEachRole((role) => server.urlFor(role)),
    (port, log) => startNats({ dataDir, port, log, users, cacheDir }),
  );
}

function forEachRole(url: (role: Role) => string): Record<Role, string> {
  return Object.fromEntries(roles.map((role) => [role, url(role)])) as Record<Role, string>;
}

function externalServer<A>(address: A): Found<A, never> {
  return { address, supervised: null, stop: async () => {} };
}

async function startPrivateServer<A, S extends ServerProcess>(
  options: BackingServicesOptions,
  name: string,
  addressOf: (server: S) => A,
  start: (port: number | undefined, log: LogSink) => Promise<S>,
): Promise<Found<A, S>> {
  const file = new LogFile(join(options.home.logs, `${name}.log`), { writeFailures: options.writeFailures });
  const log = (line: string): void => file.write(Buffer.from(`${line}\n`));
  try {
    const supervised = await superviseServer((port) => start(port, log), options.print);
    const stop = async (graceMs?: number): Promise<void> => {
      await supervised.stop(graceMs);
      file[Symbol.dispose]();
    };
    return { address: addressOf(supervised.current()), supervised, stop };
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
  print: (line: string) => void,
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
      print(`${server.name} exited (${signal ?? `exit code ${code}`}); restarting. Its last lines:\n${lines}`);
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
        print(errorMessage(error));
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
