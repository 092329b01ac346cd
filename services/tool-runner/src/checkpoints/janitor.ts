// Removes content that no checkpoint refers to; the store deletes the checkpoints. Any number of replicas may run it.
import type { Blobs } from "./blobs.ts";
import type { Rows } from "./rows.ts";

/** Younger content may belong to a row that is still being written. */
const graceMs = 60 * 60_000;
const everyMs = 6 * 60 * 60_000;
/** Delay of the first round, so that it does not slow down a restart. */
const firstMs = 60_000;

export interface JanitorOptions {
  rows: Rows;
  blobs: Blobs;
}

/** Runs one round and returns how many contents were removed. */
export async function tidy({ rows, blobs }: JanitorOptions, youngestMs = graceMs): Promise<{ contents: number }> {
  return { contents: await blobs.sweep((sha256) => rows.unreferenced(sha256), youngestMs) };
}

/** Runs one minute after the start and then every six hours, until the signal is aborted. */
export function keepTidy(
  options: JanitorOptions,
  onEnd: (went: { contents: number }) => void,
  onFailure: (error: unknown) => void,
  signal: AbortSignal,
): void {
  const run = () => void tidy(options).then(onEnd, onFailure);
  const first = setTimeout(run, firstMs).unref();
  const timer = setInterval(run, everyMs).unref();
  signal.addEventListener(
    "abort",
    () => {
      clearTimeout(first);
      clearInterval(timer);
    },
    { once: true },
  );
}
