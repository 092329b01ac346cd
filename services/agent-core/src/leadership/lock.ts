// The lock in Redis that keeps contention low. It protects nothing: the epoch in the store does. Its client is strict: a
// command that timed out must never run later, or a lock would belong to somebody who believes to have failed.
import type { Redis } from "ioredis";
import type { Logger } from "@parley/chassis";
import { openRedis, type RedisAddress, type RedisState } from "../redis.ts";

const commandTimeoutMs = 1_000;

// Compare and act, so that nobody touches a lock that has changed hands.
const renewScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end`;
const replaceScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) return 1 else return 0 end`;
const releaseScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end`;

export class LeaderLock {
  readonly #redis: Redis;
  readonly #key: string;
  readonly #ttlMs: number;

  constructor(address: RedisAddress, namespace: string, ttlMs: number, log: Logger, state?: RedisState) {
    this.#redis = openRedis(address, {
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      commandTimeout: commandTimeoutMs,
      connectTimeout: commandTimeoutMs,
      retryStrategy: () => 200,
      lazyConnect: true,
    });
    let said = "";
    this.#redis.on("error", (error: Error) => {
      if (error.message !== said) log.warn({ err: error }, "redis (lease)");
      said = error.message;
      state?.failed(error);
    });
    this.#redis.on("close", () => state?.failed(new Error("the connection is closed")));
    this.#redis.on("ready", () => {
      said = "";
      state?.reached();
    });
    this.#key = `${namespace}:leader`;
    this.#ttlMs = ttlMs;
  }

  /** Starts connecting; commands fail until it is there. Why it does not connect is logged as it is told, above. */
  connect(): void {
    this.#redis.connect().catch(() => undefined);
  }

  /** Who holds the lock, after trying to take it: `owner` itself on success. Throws when Redis cannot be asked. */
  async take(owner: string): Promise<string | null> {
    const taken = await this.#redis.set(this.#key, owner, "PX", this.#ttlMs, "NX");
    return taken === "OK" ? owner : this.#redis.get(this.#key);
  }

  /** Takes the lock from a holder that was seen dead. False when it has changed hands since. */
  async replace(holder: string, owner: string): Promise<boolean> {
    return (await this.#redis.eval(replaceScript, 1, this.#key, holder, owner, this.#ttlMs)) === 1;
  }

  /** False when the lock is no longer ours. */
  async renew(owner: string): Promise<boolean> {
    return (await this.#redis.eval(renewScript, 1, this.#key, owner, this.#ttlMs)) === 1;
  }

  async release(owner: string): Promise<void> {
    await this.#redis.eval(releaseScript, 1, this.#key, owner);
  }

  close(): void {
    this.#redis.disconnect();
  }
}
