// The BullMQ queue `schedules`: one delayed job per due time, without data; the store reports what is due. If all queue entries are
// lost, the next sweep finds the due jobs.
import type { Logger } from "@parley/chassis";
import { Queue, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { dedupeErrorsUntilReady } from "./turn-queue.ts";
import { openRedis, type RedisAddress } from "../redis.ts";

export interface DueQueueOptions {
  redis: RedisAddress;
  namespace: string;
  epoch: number;
  log: Logger;
  /** A due time has been reached. */
  due(): Promise<void>;
  /** Redis is available again, possibly empty. */
  back(): void;
}

export class DueQueue {
  readonly #epoch: number;
  readonly #queue: Queue;
  readonly #worker: Worker;
  readonly #producer: Redis;
  readonly #consumer: Redis;

  constructor(options: DueQueueOptions) {
    this.#epoch = options.epoch;
    this.#producer = openRedis(options.redis, { maxRetriesPerRequest: 1, enableOfflineQueue: false });
    this.#consumer = openRedis(options.redis, { maxRetriesPerRequest: null });
    const quiet = dedupeErrorsUntilReady(options.log);
    for (const client of [this.#producer, this.#consumer]) client.on("error", quiet.failed).on("ready", quiet.ready);
    this.#producer.on("ready", () => options.back());
    const prefix = `${options.namespace}:bull`;
    this.#queue = new Queue("schedules", {
      connection: this.#producer,
      prefix,
      skipVersionCheck: true,
      defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: true },
    });
    this.#worker = new Worker("schedules", () => options.due(), {
      connection: this.#consumer,
      prefix,
      autorun: false,
      concurrency: 1,
      skipVersionCheck: true,
    });
    this.#queue.on("error", quiet.failed);
    this.#worker.on("error", quiet.failed);
  }

  run(): void {
    void this.#worker.run();
  }

  /** Adds due times, each `delayMs` from now; existing ones stay unchanged. Failures are ignored: the sweep replaces the queue. */
  async arm(moments: readonly { at: string; delayMs: number }[]): Promise<void> {
    if (moments.length === 0) return;
    const jobs = moments.map(({ at, delayMs }) => ({
      name: "due",
      data: {},
      // The epoch is part of the id: an entry that a dead leader had started must not block ours.
      opts: { jobId: `due-${this.#epoch}-${Date.parse(at)}`, delay: delayMs },
    }));
    await this.#queue.addBulk(jobs).catch(() => undefined);
  }

  /** Closes the Redis connections at once. */
  async close(): Promise<void> {
    await Promise.allSettled([this.#worker.close(true), this.#queue.close()]);
    this.#producer.disconnect();
    this.#consumer.disconnect();
  }
}
