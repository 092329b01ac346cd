// Limits how often a stream of values is passed on.

export interface Throttled<T> {
  /** Passes the value on now, or at the end of the interval unless a newer one replaces it. */
  push(value: T): void;
  /** Drops a held value and ends the output. */
  close(): void;
}

/** Passes the first value on immediately, and the newest one of each following interval at its end. */
export function throttle<T>(intervalMs: number, emit: (value: T) => void): Throttled<T> {
  let held: { value: T } | undefined;
  let timer: NodeJS.Timeout | undefined;
  const pass = (value: T) => {
    timer = setTimeout(() => {
      timer = undefined;
      const next = held;
      held = undefined;
      if (next !== undefined) pass(next.value);
    }, intervalMs);
    timer.unref();
    emit(value);
  };
  return {
    push: (value) => {
      if (timer === undefined) pass(value);
      else held = { value };
    },
    close: () => {
      clearTimeout(timer);
      held = undefined;
    },
  };
}
