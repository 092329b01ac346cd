// What long work of a command is doing, for the person who waits.

/** Takes what is being done now; the text is computed when it is shown. */
export type Doing = (text: () => string) => void;

const everyMs = 2_000;

/** Runs `work` and writes what it is doing every two seconds; shorter work writes nothing. */
export async function withProgress<T>(work: (doing: Doing) => Promise<T>, write: (line: string) => void): Promise<T> {
  let current: (() => string) | undefined;
  const timer = setInterval(() => current !== undefined && write(current()), everyMs);
  try {
    return await work((text) => (current = text));
  } finally {
    clearInterval(timer);
  }
}

/** For example `12.3 MiB`. */
export function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
