// Access to Redis: address, TLS, the wait for its first answer, and the state of the connection.
import { setTimeout as delay } from "node:timers/promises";
import { ConfigError, explainLinkFailure, readTlsFiles, tlsFilesIn } from "@parley/chassis";
import type { Environment, ServiceMetrics, Startup, TlsFiles } from "@parley/chassis";
import { Redis, type RedisOptions } from "ioredis";

export interface RedisAddress {
  /** `redis://…`, or `rediss://…` to require TLS. */
  url: string;
  /** PEM texts; if present, TLS is required regardless of the scheme. */
  tls?: { ca?: string; cert?: string; key?: string };
  /** The files that the texts were read from. */
  files?: TlsFiles;
}

const attemptMs = 2_000;
const pauseMs = 250;

/** Reads REDIS_URL and the files of its TLS. Throws ConfigError. */
export function redisAddress(url: string, env: Environment): RedisAddress {
  const [scheme, rest] = url.split("://", 2);
  // The client would treat every other scheme as an unencrypted connection.
  if (rest !== undefined && scheme !== "redis" && scheme !== "rediss") {
    throw new ConfigError(`environment: REDIS_URL: unknown scheme "${scheme}": use redis:// or, with TLS, rediss://`);
  }
  const files = tlsFilesIn(env, "REDIS");
  const tls = readTlsFiles(files);
  return Object.keys(tls).length === 0 ? { url } : { url, tls, files };
}

/** Creates a client, which starts to connect unless `lazyConnect` is set. */
export function openRedis({ url, tls }: RedisAddress, options: Omit<RedisOptions, "replyMapping">): Redis {
  return new Redis(url, { ...options, ...(tls === undefined ? {} : { tls }) });
}

/** Whether TLS protects the connections. */
export function isEncrypted({ url, tls }: RedisAddress): boolean {
  return tls !== undefined || url.startsWith("rediss://");
}

/** Resolves when Redis has answered a PING with these credentials; until then `startup` contains the reason. */
export async function waitForRedis(address: RedisAddress, startup: Startup): Promise<void> {
  for (;;) {
    const problem = await tryRedis(address);
    if (problem === null) break;
    startup.waiting("Redis", problem);
    await delay(pauseMs);
  }
  startup.arrived("Redis");
}

/** Null when Redis answers, otherwise the reason as text. */
async function tryRedis(address: RedisAddress): Promise<string | null> {
  const client = openRedis(address, {
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    connectTimeout: attemptMs,
    commandTimeout: attemptMs,
    retryStrategy: () => null,
  });
  // The first error is the cause; later ones only report the closed connection.
  let first: unknown;
  client.on("error", (error) => (first ??= error));
  try {
    await client.connect();
    await client.ping();
    return null;
  } catch (error) {
    return explainLinkFailure(first ?? error, "REDIS_CA_FILE");
  } finally {
    client.disconnect();
  }
}

/** Whether Redis is reachable, for the health report and the metrics; a failure after the start changes no probe. */
export class RedisState {
  #problem: string | null = null;
  readonly #metrics: ServiceMetrics;

  constructor(metrics: ServiceMetrics) {
    this.#metrics = metrics;
    this.#metrics.set("parley_redis_connected", 0);
  }

  /** Why Redis is unreachable; null while it is reachable. */
  get problem(): string | null {
    return this.#problem;
  }

  connected(): void {
    this.#problem = null;
    this.#metrics.set("parley_redis_connected", 1);
  }

  failed(error: unknown): void {
    this.#problem = explainLinkFailure(error, "REDIS_CA_FILE");
    this.#metrics.set("parley_redis_connected", 0);
  }
}
