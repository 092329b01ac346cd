// How the leader finds work: wake-up hints are forwarded at once, a periodic sweep finds sessions without a hint.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { inboxReady, store } from "@parley/contracts";
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
}

export interface WakeUps {
  /** Sweeps now, e.g. because Redis came back empty. */
  sweep(): Promise<void>;
  stop(): void;
}

export function startWakeUps(deps: WakeUpDeps): WakeUps {
  const { bus, queue, sessions, leaderStore, log } = deps;
  const hints = bus.subscribe(inboxReady, {}, ({ sessionId, priority, afterMs = 0, steers }) => {
    // An active session is notified at once: input may join the running turn.
    if (afterMs === 0 && sessions.isActive(sessionId)) void sessions.drain(sessionId, steers);
    else void queue.wake(sessionId, priority, { delayMs: afterMs });
  });
  const sweep = async () => {
    try {
      const { sessions: waiting } = await leaderStore.request(
        store.inboxPending,
        { limit: 1_000 },
        { timeoutMs: sweepMs },
      );
      for (const { sessionId, priority } of waiting) {
        // The key contains the epoch, so that a wake-up started by a dead leader does not block this one.
        if (!sessions.isActive(sessionId))
          await queue.wake(sessionId, priority, { key: `sweep-${leaderStore.epoch}-${sessionId}` });
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
      clearInterval(timer);
    },
  };
}
