// The leader lock in Redis. It only avoids that several replicas try to lead; the epoch in the store protects the data. The Redis client
// neither queues nor resends commands: a command that timed out must never run later, or this replica would hold a lock that it considers
// lost.
import type { Redis } from "ioredis";
import type { Logger } from "@parley/chassis";
import { openRedis, type RedisAddress, type RedisState } from "../redis.ts";

const commandTimeoutMs = 1_000;

// Each changes the lock only while its holder is still the expected one.
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
    let lastMessage = "";
    this.#redis.on("error", (error: Error) => {
      if (error.message !== lastMessage) log.warn({ err: error }, "redis connection failed: leader lock");
      lastMessage = error.message;
      state?.failed(error);
    });
    this.#redis.on("close", () => state?.failed(new Error("the connection is closed")));
    this.#redis.on("ready", () => {
      lastMessage = "";
      state?.connected();
    });
    this.#key = `${namespace}:leader`;
    this.#ttlMs = ttlMs;
  }

  /**
   * Resolves when the first attempt to connect has ended, after at most a second; commands fail until the connection is up. Connection errors
   * are logged by the handler above.
   */
  async connect(): Promise<void> {
    await this.#redis.connect().catch(() => undefined);
  }

  /** Tries to acquire the lock and returns its holder: `owner` on success. Throws when Redis does not respond. */
  async acquire(owner: string): Promise<string | null> {
    const outcome = await this.#redis.set(this.#key, owner, "PX", this.#ttlMs, "NX");
    return outcome === "OK" ? owner : this.#redis.get(this.#key);
  }

  /** Takes the lock over from a holder that no longer responds. False when the holder has changed. */
  async takeOver(holder: string, owner: string): Promise<boolean> {
    return (await this.#redis.eval(replaceScript, 1, this.#key, holder, owner, this.#ttlMs)) === 1;
  }

  /** Extends the lock. False when `owner` no longer holds it. */
  async renew(owner: string): Promise<boolean> {
    return (await this.#redis.eval(renewScript, 1, this.#key, owner, this.#ttlMs)) === 1;
  }

  /** Does nothing if `owner` no longer holds the lock. */
  async release(owner: string): Promise<void> {
    await this.#redis.eval(releaseScript, 1, this.#key, owner);
  }

  close(): void {
    this.#redis.disconnect();
  }
}
