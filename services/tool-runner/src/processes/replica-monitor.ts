// Reports this replica as alive at intervals, and detects replicas that fell silent: their background processes are lost, and the
// sessions are notified. Any replica may detect this; the store accepts the first report.
import type { Bus } from "@parley/bus";
import { store, WireError, type OutputOf } from "@parley/contracts";
import type { Logger } from "@parley/chassis";
import { setTimeout as delay } from "node:timers/promises";
import { isPreviousInstance, replicaOfRunner, runnerName, type RunnerId } from "../tool/claim-decision.ts";

type Others = OutputOf<typeof store.processRenew>["others"];

export interface WatchTimes {
  /** Interval between liveness reports. */
  renewMs: number;
  /** Consecutive polls without a new liveness report before a replica counts as gone. Polls that the store did not answer do not count. */
  looks: number;
}

export const watchTimes: WatchTimes = { renewMs: 10_000, looks: 4 };

/** The last liveness report of each other replica, and how many polls returned it. */
export type Seen = ReadonlyMap<string, { seenAt: string; looks: number }>;

/** Evaluates one poll; pure. A previous instance of this replica counts as gone immediately. */
export function checkReplicas(before: Seen, others: Others, me: RunnerId, looks: number): { seen: Seen; lost: Others } {
  const seen = new Map<string, { seenAt: string; looks: number }>();
  for (const { runner, seenAt } of others) {
    const last = before.get(runner);
    seen.set(runner, { seenAt, looks: last?.seenAt === seenAt ? last.looks + 1 : 1 });
  }
  const lost = others.filter(({ runner }) => isPreviousInstance(runner, me) || (seen.get(runner)?.looks ?? 0) >= looks);
  return { seen, lost };
}

export interface ReplicaMonitor {
  /** The other replicas that had background processes at the last poll. */
  others(): string[];
  close(): void;
}

/** Runs until it is closed. `key`: the secret of this process instance. */
export function monitorReplicas(
  { bus, log, me, key }: { bus: Bus; log: Logger; me: RunnerId; key: string },
  { renewMs, looks }: WatchTimes,
): ReplicaMonitor {
  const over = new AbortController();
  const { signal } = over;
  const runner = runnerName(me);
  const once = async (before: Seen): Promise<Seen> => {
    const { others } = await bus.request(store.processRenew, { runner, key }, { timeoutMs: renewMs, signal });
    const { seen, lost: missing } = checkReplicas(before, others, me, looks);
    if (missing.length === 0) return seen;
    const { lost } = await bus.request(
      store.processRenew,
      { runner, key, gone: missing },
      { timeoutMs: renewMs, signal },
    );
    for (const each of lost) {
      if (each.processes > 0)
        log.warn(
          { runner: each.runner, count: each.processes },
          "tool-runner lost: its background processes are marked as lost",
        );
    }
    return seen;
  };
  let seen: Seen = new Map();
  const run = async () => {
    while (!signal.aborted) {
      try {
        seen = await once(seen);
      } catch (error) {
        if (signal.aborted) return;
        // An unavailable store may have missed the reports of other replicas, too: start counting again.
        seen = new Map();
        if (!WireError.is(error, "UNAVAILABLE", "TIMEOUT")) log.warn({ err: error }, "liveness report rejected");
      }
      await delay(renewMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  };
  void run();
  return {
    others: () => [...new Set([...seen.keys()].map(replicaOfRunner))].filter((replica) => replica !== me.replica),
    close: () => over.abort(),
  };
}
