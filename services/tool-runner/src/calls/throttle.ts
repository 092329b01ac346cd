// Throttles a stream of values: passes on the newest one, at most once per interval.

export interface Throttled<T> {
  say(value: T): void;
  /** Stops the output and drops a held value. */
  close(): void;
}

/** Passes the first value at once, and the last one of each following interval of `everyMs` at its end. */
export function throttle<T>(everyMs: number, say: (value: T) => void): Throttled<T> {
  let held: { value: T } | undefined;
  let timer: NodeJS.Timeout | undefined;
  const rest = () => {
    timer = undefined;
    if (held === undefined) return;
    const { value } = held;
    held = undefined;
    speak(value);
  };
  const speak = (value: T) => {
    timer = setTimeout(rest, everyMs);
    timer.unref();
    say(value);
  };
  return {
    say: (value) => {
      if (timer === undefined) speak(value);
      else held = { value };
    },
    close: () => {
      clearTimeout(timer);
      held = undefined;
    },
  };
}
