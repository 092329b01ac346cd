// Runs schedules in the leader: requests due jobs from the store, turns them into input, and queues the next due times. Runs at start,
// periodically, when Redis returns, when a job changes, and at queued due times; each run also finds what earlier ones missed.
import { rerunWhileRequested } from "@parley/kit";
import type { Bus } from "@parley/bus";
import { Counter, type Logger, type ServiceMetrics } from "@parley/chassis";
import { controlHeartbeat, scheduleChanged, store, type HeartbeatSettings } from "@parley/contracts";
import { HeartbeatRunner } from "./heartbeat.ts";
import type { LeaderStore } from "../store-client/leader-store.ts";
import type { RedisAddress } from "../redis.ts";
import { DueQueue } from "../queue/due-queue.ts";

/** Maximum delay of a due job if Redis lost its data. */
const sweepMs = 5_000;
/** Due times within this period are queued; it spans several sweeps. */
const horizonMs = 60_000;
const storeTimeoutMs = 30_000;

export interface SchedulerDeps {
  bus: Bus;
  log: Logger;
  metrics: ServiceMetrics;
  leaderStore: LeaderStore;
  redis: RedisAddress;
  namespace: string;
  heartbeat: HeartbeatSettings;
  /** IANA name; the time zone of the heartbeats' active hours. */
  timeZone: string;
}

export interface Scheduler {
  /** Starts no further jobs; resolves when the current run is settled or abandoned. */
  stop(): Promise<void>;
}

export function startScheduler(deps: SchedulerDeps): Scheduler {
  const { bus, leaderStore, log } = deps;
  const stopping = new AbortController();
  const { signal } = stopping;
  const settled = new Counter({
    name: "parley_schedule_due_total",
    help: "Due times of jobs, by outcome",
    labelNames: ["outcome"],
    registers: [deps.metrics.registry],
  });
  const heartbeat = new HeartbeatRunner({ log, leaderStore, settings: deps.heartbeat, timeZone: deps.timeZone });

  const fireDue = async () => {
    for (;;) {
      const { now, due, upcoming } = await leaderStore.request(
        store.scheduleDue,
        { limit: store.maxDueJobs, horizonMs },
        { timeoutMs: storeTimeoutMs, signal },
      );
      // Delays use the database's clock, so that a job is not too early for it.
      await queue.arm(upcoming.map((at) => ({ at, delayMs: Math.max(1, Date.parse(at) - Date.parse(now)) })));
      if (due.length === 0) return;
      const counts = await leaderStore.request(store.scheduleFire, { due }, { timeoutMs: storeTimeoutMs, signal });
      for (const outcome of ["fired", "skipped", "missed", "failed"] as const) {
        if (counts[outcome] > 0) settled.inc({ outcome }, counts[outcome]);
      }
      // Another party is changing these jobs; the next run sees the result.
      if (counts.gone === due.length) return;
    }
  };
  const look = rerunWhileRequested(async () => {
    try {
      await fireDue();
      await heartbeat.poll(Date.now());
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ err: error }, "due jobs not processed: retried by the next sweep");
    }
  }, signal);

  const queue = new DueQueue({
    redis: deps.redis,
    namespace: deps.namespace,
    epoch: leaderStore.epoch,
    log,
    due: look,
    back: () => void look(),
  });
  const changes = bus.subscribe(scheduleChanged, {}, () => void look());
  const control = bus.serve(controlHeartbeat, ({ opId }) => heartbeat.byHand(opId));
  const timer = setInterval(() => void look(), sweepMs);
  queue.run();
  void look();
  return {
    async stop() {
      stopping.abort();
      clearInterval(timer);
      changes.close();
      control.close();
      await queue.close();
      await look();
    },
  };
}
