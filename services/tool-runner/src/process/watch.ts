// Says again and again that this replica lives, and looks whether the others do that have commands in the background: those of one
// that fell silent are lost, and their sessions are told. Any replica may find it out; the store takes the first one's word.
import type { Bus } from "@parley/bus";
import { store, WireError, type OutputOf } from "@parley/contracts";
import type { Logger } from "@parley/chassis";
import { setTimeout as delay } from "node:timers/promises";
import { isEarlierLife, runnerName, type RunnerId } from "../serving/claims.ts";

type Others = OutputOf<typeof store.processRenew>["others"];

export interface WatchTimes {
  /** Between two signs of life. */
  renewMs: number;
  /** Looks in a row at which another one has shown no new sign before it counts as gone. A look that the store does not answer is none. */
  looks: number;
}

export const watchTimes: WatchTimes = { renewMs: 10_000, looks: 4 };

/** What was last seen of another one, and how often it was seen so. */
export type Seen = ReadonlyMap<string, { seenAt: string; looks: number }>;

/** What one more look tells; pure. An earlier life of this replica is gone for certain. */
export function look(before: Seen, others: Others, me: RunnerId, looks: number): { seen: Seen; gone: Others } {
  const seen = new Map<string, { seenAt: string; looks: number }>();
  for (const { runner, seenAt } of others) {
    const last = before.get(runner);
    seen.set(runner, { seenAt, looks: last?.seenAt === seenAt ? last.looks + 1 : 1 });
  }
  const gone = others.filter(({ runner }) => isEarlierLife(runner, me) || (seen.get(runner)?.looks ?? 0) >= looks);
  return { seen, gone };
}

/** Until it is closed. `key`: the secret of this life. */
export function watchOthers(
  { bus, log, me, key }: { bus: Bus; log: Logger; me: RunnerId; key: string },
  { renewMs, looks }: WatchTimes,
): { close(): void } {
  const over = new AbortController();
  const { signal } = over;
  const runner = runnerName(me);
  const once = async (before: Seen): Promise<Seen> => {
    const { others } = await bus.request(store.processRenew, { runner, key }, { timeoutMs: renewMs, signal });
    const { seen, gone } = look(before, others, me, looks);
    for (const each of gone) {
      const { lost } = await bus.request(store.processLose, each, { timeoutMs: renewMs, signal });
      if (lost > 0)
        log.warn({ runner: each.runner, lost }, "a tool-runner is gone, and its background processes with it");
    }
    return seen;
  };
  const run = async () => {
    let seen: Seen = new Map();
    while (!signal.aborted) {
      try {
        seen = await once(seen);
      } catch (error) {
        if (signal.aborted) return;
        // A store that was away cannot have heard of the others either: what was seen before counts no more.
        seen = new Map();
        if (!WireError.is(error, "UNAVAILABLE", "TIMEOUT")) log.warn({ err: error }, "signs of life are not taken");
      }
      await delay(renewMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  };
  void run();
  return { close: () => over.abort() };
}
