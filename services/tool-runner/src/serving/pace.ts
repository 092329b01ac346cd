// Says the newest of what comes too fast, at most once in a while.

export interface Pace<T> {
  say(value: T): void;
  /** Nothing more is said; what was held back is dropped. */
  close(): void;
}

/** The first is said at once; of those that follow within `everyMs` the last one, when that time is over. */
export function atMostEvery<T>(everyMs: number, say: (value: T) => void): Pace<T> {
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
