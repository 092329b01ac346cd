// Liveness checks of a process, for probes at any time. A hanging check is not started a second time.

import { setTimeout as delay } from "node:timers/promises";

import { errorMessage } from "@parley/contracts";

/** Less than the time a probe has. */
const deadlineMs = 3_000;

/** `work`: a small piece of real work. The check resolves with the reason of a failure or undefined, within `withinMs`. */
export function createLiveness(work: () => Promise<void>, withinMs = deadlineMs): () => Promise<string | undefined> {
  let running: { outcome: Promise<string | undefined>; begun: number } | undefined;
  return async () => {
    const begin = () => {
      const outcome = work()
        .then(
          () => undefined,
          (error: unknown) => `the service failed its own check: ${errorMessage(error)}`,
        )
        .finally(() => (running = undefined));
      return { outcome, begun: performance.now() };
    };
    const { outcome, begun } = (running ??= begin());
    const stuck = `the service has not finished its own check within ${withinMs} ms: its threads are blocked`;
    const leftMs = begun + withinMs - performance.now();
    if (leftMs <= 0) return stuck;
    const waiting = new AbortController();
    const late = delay(leftMs, stuck, { signal: waiting.signal, ref: false }).catch(() => undefined);
    try {
      return await Promise.race([outcome, late]);
    } finally {
      waiting.abort();
    }
  };
}
