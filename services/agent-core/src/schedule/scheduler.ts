// Runs schedules in the leader: requests due jobs from the store and turns them into input. Runs at start, periodically, when a job
// changes, and at the next due time; each run also finds what earlier ones missed. The store keeps the due times: a lost timer costs
// one sweep at most.
import type { Bus } from "@parley/bus";
import type { Logger, ServiceMetrics } from "@parley/chassis";
import { controlHeartbeat, scheduleChanged, store, type ParleySettings } from "@parley/contracts";
import { omitUndefined, rerunWhileRequested } from "@parley/kit";
import { admissionOfJob } from "./admission.ts";
import { HeartbeatRunner } from "./heartbeat.ts";
import type { LeaderStore } from "../store-client/leader-store.ts";

/** Also finds due times when the hint about a changed job is lost. */
const sweepMs = 5_000;
/** The next due time within this period sets the timer; it spans several sweeps. */
const horizonMs = 60_000;
const storeTimeoutMs = 30_000;

export interface SchedulerDeps {
  bus: Bus;
  log: Logger;
  metrics: ServiceMetrics;
  leaderStore: LeaderStore;
  settings: Pick<ParleySettings, "heartbeat" | "channels">;
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
  const heartbeat = new HeartbeatRunner({
    log,
    leaderStore,
    settings: deps.settings.heartbeat,
    timeZone: deps.timeZone,
  });

  let nextDue: NodeJS.Timeout | undefined;
  const fireDue = async () => {
    for (;;) {
      const { now, due, upcoming } = await leaderStore.request(
        store.scheduleDue,
        { limit: store.maxDueJobs, horizonMs },
        { timeoutMs: storeTimeoutMs, signal },
      );
      clearTimeout(nextDue);
      const [next] = upcoming;
      // The delay uses the database's clock, so that a job is not too early for it.
      if (next !== undefined && !signal.aborted)
        nextDue = setTimeout(() => void poll(), Math.max(1, Date.parse(next) - Date.parse(now)));
      if (due.length === 0) return;
      const fired = due.map(({ person, ...job }) => ({
        ...job,
        ...omitUndefined({ admission: admissionOfJob(deps.settings, { person }) }),
      }));
      const counts = await leaderStore.request(
        store.scheduleFire,
        { due: fired },
        { timeoutMs: storeTimeoutMs, signal },
      );
      for (const outcome of ["fired", "skipped", "missed", "failed"] as const) {
        if (counts[outcome] > 0) deps.metrics.count("parley_schedule_due_total", { outcome }, counts[outcome]);
      }
      // Another party is changing these jobs; the next run sees the result.
      if (counts.gone === due.length) return;
    }
  };
  const poll = rerunWhileRequested(async () => {
    try {
      await fireDue();
      await heartbeat.poll(Date.now());
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ err: error }, "due jobs not processed: retried by the next sweep");
    }
  }, signal);

  const changes = bus.subscribe(scheduleChanged, {}, () => void poll());
  const control = bus.serve(controlHeartbeat, ({ opId }) => heartbeat.byHand(opId));
  const timer = setInterval(() => void poll(), sweepMs);
  void poll();
  return {
    async stop() {
      stopping.abort();
      clearInterval(timer);
      changes.close();
      control.close();
      clearTimeout(nextDue);
      await poll();
    },
  };
}
