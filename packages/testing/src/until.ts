// Waits of tests. They share one limit, which only ends a wait for something that never comes.
import { setTimeout as delay } from "node:timers/promises";

/** The awaited event ends a wait immediately, so a generous limit costs nothing; a busy machine may need seconds for what takes milliseconds. */
const hangMs = 60_000;
/**
 * The pause between two requests, in milliseconds: a wait without pauses takes the processor from what it waits for. It grows with the
 * time waited, so that the wait ends at most a tenth later than the awaited change, and a long one costs little.
 */
export function pollPauseMs(waitedMs: number): number {
  return Math.min(Math.max(waitedMs / 10, 10), 100);
}

/**
 * Resolves with the first value other than null that `look` returns, now or after a change. `watch` calls its argument after each change
 * until the returned function is called. Rejects with the text of `describe` after one minute.
 */
export async function untilValue<Value>(
  look: () => Value | null,
  watch: (check: () => void) => () => void,
  describe: () => string,
): Promise<Value> {
  const { promise, resolve, reject } = Promise.withResolvers<Value>();
  const check = (): void => {
    const value = look();
    if (value !== null) resolve(value);
  };
  const stop = watch(check);
  const timer = setTimeout(() => reject(new Error(`waited ${hangMs} ms for ${describe()}`)), hangMs);
  try {
    check();
    return await promise;
  } finally {
    clearTimeout(timer);
    stop();
  }
}

/**
 * Repeats a request, for changes that nothing announces. Resolves with its first result other than undefined, null and false; rejects with
 * `what` after one minute.
 */
export async function pollUntil<Value>(
  request: () => Value | Promise<Value>,
  what = "a condition",
): Promise<Exclude<Value, undefined | null | false>> {
  const startMs = performance.now();
  for (;;) {
    const value = await request();
    if (value !== undefined && value !== null && value !== false)
      return value as Exclude<Value, undefined | null | false>;
    const waitedMs = performance.now() - startMs;
    if (waitedMs > hangMs) throw new Error(`waited ${hangMs} ms for ${what}`);
    await delay(pollPauseMs(waitedMs));
  }
}
