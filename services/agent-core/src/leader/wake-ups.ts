// How the leader finds work: wake-up hints, and a periodic sweep for sessions without a hint. A session starts immediately while turns
// are free; otherwise it is queued.
import type { Bus } from "@parley/bus";
import { activeTrace, inSpan, type Logger } from "@parley/chassis";
import { inboxReady, store } from "@parley/contracts";
import { reportCapacity } from "./capacity.ts";
import type { SessionRunner } from "./session-runner.ts";
import type { LeaderStore } from "../store-client/leader-store.ts";
import type { TurnQueue } from "../queue/turn-queue.ts";

/** The longest delay that a lost hint can cause. */
const sweepMs = 2_000;

export interface WakeUpDeps {
  bus: Bus;
  log: Logger;
  leaderStore: LeaderStore;
  queue: TurnQueue;
  sessions: SessionRunner;
  /** Sessions that hints start without the queue: the number of turns that run at the same time. */
  maxDirect: number;
}

export interface WakeUps {
  /** Sweeps now, e.g. because Redis came back empty. */
  sweep(): Promise<void>;
  stop(): void;
}

export function startWakeUps(deps: WakeUpDeps): WakeUps {
  const { bus, queue, sessions, leaderStore, log, maxDirect } = deps;
  // While turns are free no order has to be kept. The queue would cost three round trips to Redis; the row in the inbox is the durable record.
  const isFree = () => sessions.activeCount < maxDirect;
  const capacity = reportCapacity(bus, leaderStore.epoch, sessions, maxDirect);
  const hints = bus.subscribe(inboxReady, {}, ({ sessionId, priority, afterMs = 0, steers, started }) => {
    if (afterMs > 0) void queue.wake(sessionId, priority, { delayMs: afterMs });
    // An active session is notified immediately: input may join the running turn.
    else if (sessions.isActive(sessionId)) void sessions.drain(sessionId, { steers, started });
    // A started turn has left the queue; it waits for its slot like the turns of the sweep.
    else if (started !== undefined || isFree()) {
      void drainTraced(sessions, sessionId, started).finally(() => capacity.changed());
      capacity.changed();
    } else void queue.wake(sessionId, priority);
  });
  const sweep = async () => {
    capacity.repeat();
    try {
      const { sessions: waiting } = await leaderStore.request(
        store.inboxPending,
        { limit: 1_000 },
        { timeoutMs: sweepMs },
      );
      for (const { sessionId, priority } of waiting) {
        if (sessions.isActive(sessionId)) continue;
        if (isFree()) void sessions.drain(sessionId);
        // The key contains the epoch, so that a wake-up started by a dead leader does not block this one.
        else await queue.wake(sessionId, priority, { key: `sweep-${leaderStore.epoch}-${sessionId}` });
      }
    } catch (error) {
      log.warn({ err: error }, "sweep failed: retried in 2 s");
    }
  };
  const timer = setInterval(() => void sweep(), sweepMs);
  return {
    sweep,
    stop() {
      hints.close();
      capacity.stop();
      clearInterval(timer);
    },
  };
}

/** Drains a session as part of the trace of its hint, if there is one. */
function drainTraced(
  sessions: SessionRunner,
  sessionId: string,
  started: store.StartedTurn | undefined,
): Promise<void> {
  const drain = () => sessions.drain(sessionId, { started });
  return activeTrace() === null ? drain() : inSpan("process turns", { kind: "consumer" }, drain);
}
