// The BullMQ queue `turns`: wake-ups that say which session to look at, never what is in it. Losing all of them costs one
// sweep. Priorities decide which session gets the next free slot.
import { activeTrace, inSpan, type Logger } from "@parley/chassis";
import { Queue, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { openRedis, type RedisAddress } from "../redis.ts";

interface WakeUp {
  sessionId: string;
  /** W3C traceparent of what woke it, where that is known: shows how long it waited here. The turn's own trace is in the store. */
  trace?: string;
}

const spanAttributes = { "messaging.system": "bullmq", "messaging.destination.name": "turns" };

export interface TurnQueueOptions {
  redis: RedisAddress;
  namespace: string;
  /** Sessions worked on at the same time. */
  concurrency: number;
  log: Logger;
  /** Works until nothing waits in the session. */
  drain(sessionId: string): Promise<void>;
  /** Redis is there again, perhaps empty. */
  back(): void;
}

export class TurnQueue {
  readonly #queue: Queue<WakeUp>;
  readonly #worker: Worker<WakeUp>;
  readonly #producer: Redis;
  readonly #consumer: Redis;

  constructor(options: TurnQueueOptions) {
    const { log } = options;
    // A producer that cannot reach Redis fails at once: the sweep repairs it. A worker waits for ever.
    this.#producer = openRedis(options.redis, { maxRetriesPerRequest: 1, enableOfflineQueue: false });
    this.#consumer = openRedis(options.redis, { maxRetriesPerRequest: null });
    const quiet = onceUntilReady(log);
    for (const client of [this.#producer, this.#consumer]) client.on("error", quiet.failed).on("ready", quiet.ready);
    let first = true;
    this.#producer.on("ready", () => {
      if (!first) options.back();
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
      // A wake-up is never failed for having been interrupted: the turn's own attempts are counted in the store.
      maxStalledCount: 1_000,
      skipVersionCheck: true,
    });
    this.#queue.on("error", quiet.failed);
    this.#worker.on("error", quiet.failed);
  }

  run(): void {
    void this.#worker.run();
  }

  /** Wakes a session. Failing is harmless. With a `key`, the same wake-up is not repeated while it waits. */
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

  /** Lets go of Redis at once; interrupted wake-ups are repeated by the next sweep. */
  async close(): Promise<void> {
    await Promise.allSettled([this.#worker.close(true), this.#queue.close()]);
    this.#producer.disconnect();
    this.#consumer.disconnect();
  }
}

/** Works on a session under the span of what woke it; a wake-up of the sweep has none. */
function drainTraced({ sessionId, trace }: WakeUp, turns: Pick<TurnQueueOptions, "drain">): Promise<void> {
  if (trace === undefined) return turns.drain(sessionId);
  const options = { kind: "consumer" as const, parent: trace, attributes: spanAttributes };
  return inSpan("process turns", options, () => turns.drain(sessionId));
}

/** Says a repeated error once until the connection is back. */
export function onceUntilReady(log: Logger) {
  let said = "";
  return {
    failed: (error: Error) => {
      if (error.message !== said) log.warn({ err: error }, "redis (queue)");
      said = error.message;
    },
    ready: () => {
      said = "";
    },
  };
}
