// The BullMQ queue `turns`: wake-ups that contain a session id and no content. If all are lost, the next sweep finds the sessions.
// Priorities decide which session gets the next free slot.
import { activeTrace, inSpan, type Logger } from "@parley/chassis";
import { Queue, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { openRedis, type RedisAddress } from "../redis.ts";

interface WakeUp {
  sessionId: string;
  /**
   * W3C traceparent of the wake-up's cause, if known: shows the time spent in the queue. The store has the turn's own
   * trace.
   */
  trace?: string;
}

const spanAttributes = { "messaging.system": "bullmq", "messaging.destination.name": "turns" };

export interface TurnQueueOptions {
  redis: RedisAddress;
  namespace: string;
  /** Sessions processed at the same time. */
  concurrency: number;
  log: Logger;
  /** Works until no input is queued in the session. */
  drain(sessionId: string): Promise<void>;
  /** Redis is available again, perhaps empty. */
  onReconnect(): void;
}

export class TurnQueue {
  readonly #queue: Queue<WakeUp>;
  readonly #worker: Worker<WakeUp>;
  readonly #producer: Redis;
  readonly #consumer: Redis;

  constructor(options: TurnQueueOptions) {
    const { log } = options;
    // A producer without Redis fails immediately and the sweep repairs it; a worker waits indefinitely.
    this.#producer = openRedis(options.redis, { maxRetriesPerRequest: 1, enableOfflineQueue: false });
    this.#consumer = openRedis(options.redis, { maxRetriesPerRequest: null });
    const quiet = dedupeErrorsUntilReady(log);
    for (const client of [this.#producer, this.#consumer]) client.on("error", quiet.failed).on("ready", quiet.ready);
    let first = true;
    this.#producer.on("ready", () => {
      if (!first) options.onReconnect();
      first = false;
    });
    const prefix = `${options.namespace}:bull`;
    this.#queue = new Queue("turns", {
      connection: this.#producer,
      prefix,
      skipVersionCheck: true,
      defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: { count: 1_000 } },
    });
    this.#worker = new Worker<WakeUp>("turns", ({ data }) => drainTraced(data, options), {
      connection: this.#consumer,
      prefix,
      autorun: false,
      concurrency: options.concurrency,
      lockDuration: 60_000,
      stalledInterval: 15_000,
      // An interrupted wake-up never counts as failed: the store counts the turn's attempts.
      maxStalledCount: 1_000,
      skipVersionCheck: true,
    });
    this.#queue.on("error", quiet.failed);
    this.#worker.on("error", quiet.failed);
  }

  run(): void {
    void this.#worker.run();
  }

  /** Wakes a session; a failure is harmless. With a `key`, a wake-up that is still queued is not added again. */
  async wake(
    sessionId: string,
    priority: number,
    { key, delayMs = 0 }: { key?: string; delayMs?: number } = {},
  ): Promise<void> {
    const add = async () => {
      const trace = activeTrace();
      const wakeUp = trace === null ? { sessionId } : { sessionId, trace };
      await this.#queue.add("drain", wakeUp, {
        priority,
        ...(key === undefined ? {} : { jobId: key }),
        ...(delayMs === 0 ? {} : { delay: delayMs }),
      });
    };
    // The sweep belongs to no trace.
    const added =
      activeTrace() === null ? add() : inSpan("send turns", { kind: "producer", attributes: spanAttributes }, add);
    await added.catch(() => undefined);
  }

  /** Wake-ups by state. Rejects without Redis. */
  counts(): Promise<Record<string, number>> {
    return this.#queue.getJobCounts("waiting", "prioritized", "delayed", "active", "failed");
  }

  /** Disconnects from Redis immediately; the next sweep repeats interrupted wake-ups. */
  async close(): Promise<void> {
    await Promise.allSettled([this.#worker.close(true), this.#queue.close()]);
    this.#producer.disconnect();
    this.#consumer.disconnect();
  }
}

/** Drains a session in the trace of its wake-up's cause; wake-ups of the sweep have none. */
function drainTraced({ sessionId, trace }: WakeUp, turns: Pick<TurnQueueOptions, "drain">): Promise<void> {
  if (trace === undefined) return turns.drain(sessionId);
  const options = { kind: "consumer" as const, parent: trace, attributes: spanAttributes };
  return inSpan("process turns", options, () => turns.drain(sessionId));
}

/** Logs a repeated error once until the connection is restored. */
function dedupeErrorsUntilReady(log: Logger) {
  let lastMessage = "";
  return {
    failed: (error: Error) => {
      if (error.message !== lastMessage) log.warn({ err: error }, "redis connection failed: queue");
      lastMessage = error.message;
    },
    ready: () => {
      lastMessage = "";
    },
  };
}
