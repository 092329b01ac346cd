// Time in the leader: asks the store what is due, has it made input, and arms the moments that follow. It looks at its start,
// every few seconds, when Redis comes back, when a job has changed, and when an armed moment has come; each look finds whatever
// the ones before have missed.
import type { Bus } from "@parley/bus";
import { Counter, type Logger, type ServiceMetrics } from "@parley/chassis";
import { controlHeartbeat, newId, scheduleChanged, store, WireError, type HeartbeatSettings } from "@parley/contracts";
import { Heartbeat } from "./beat.ts";
import type { RedisAddress } from "../redis.ts";
import { DueQueue } from "./due-queue.ts";

/** The most that an empty Redis can cost. */
const sweepMs = 5_000;
/** Moments this far ahead are armed: several sweeps. */
const horizonMs = 60_000;
const storeTimeoutMs = 30_000;

export interface SchedulerDeps {
  bus: Bus;
  log: Logger;
  metrics: ServiceMetrics;
  epoch: number;
  redis: RedisAddress;
  namespace: string;
  heartbeat: HeartbeatSettings;
  /** IANA name: in which the hours of heartbeats are meant. */
  timeZone: string;
  lost(reason: string): void;
}

export interface Scheduler {
  /** Fires nothing any more; resolves when what was being fired is settled or given up. */
  stop(): Promise<void>;
}

export function startScheduler(deps: SchedulerDeps): Scheduler {
  const { bus, epoch, log } = deps;
  const stopping = new AbortController();
  const { signal } = stopping;
  const settled = new Counter({
    name: "parley_schedule_due_total",
    help: "Due times of jobs by what became of them",
    labelNames: ["outcome"],
    registers: [deps.metrics.registry],
  });
  const heartbeat = new Heartbeat({ bus, log, epoch, settings: deps.heartbeat, timeZone: deps.timeZone });

  const fireDue = async () => {
    for (;;) {
      const { now, due, upcoming } = await bus.request(
        store.scheduleDue,
        { limit: store.maxDueJobs, horizonMs },
        { timeoutMs: storeTimeoutMs, signal },
      );
      // By the database's clock, so that an armed moment is not too early for it.
      await queue.arm(upcoming.map((at) => ({ at, delayMs: Math.max(1, Date.parse(at) - Date.parse(now)) })));
      if (due.length === 0) return;
      const counts = await bus.request(
        store.scheduleFire,
        { opId: newId(), epoch, due },
        { timeoutMs: storeTimeoutMs, signal },
      );
      for (const outcome of ["fired", "skipped", "missed", "failed"] as const) {
        if (counts[outcome] > 0) settled.inc({ outcome }, counts[outcome]);
      }
      // Somebody else changes these very jobs; the next look sees what it has made of them.
      if (counts.gone === due.length) return;
    }
  };
  const look = singleFlight(async () => {
    try {
      await fireDue();
      await heartbeat.poll(Date.now());
    } catch (error) {
      if (signal.aborted) return;
      if (WireError.is(error, "STALE_EPOCH")) deps.lost("another agent-core has taken over");
      else log.warn({ err: error }, "jobs could not be looked at; tried again");
    }
  }, signal);

  const queue = new DueQueue({
    redis: deps.redis,
    namespace: deps.namespace,
    epoch,
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

/** One run at a time; asked for while it runs, it runs once more. Everybody waits for the run that has seen their wish. */
function singleFlight(work: () => Promise<void>, signal: AbortSignal): () => Promise<void> {
  let running: Promise<void> | undefined;
  let again = false;
  const loop = async () => {
    do {
      again = false;
      await work();
    } while (again && !signal.aborted);
  };
  return () => {
    if (running !== undefined) {
      again = true;
      return running;
    }
    if (signal.aborted) return Promise.resolve();
    running = loop().finally(() => {
      running = undefined;
    });
    return running;
  };
}
