// Removes the content that no checkpoint names any more; the store forgets the checkpoints. Any number of replicas may do it.
import type { Blobs } from "./blobs.ts";
import type { Rows } from "./rows.ts";

/** Content younger than this may belong to a row that is just being written. */
const graceMs = 60 * 60_000;
const everyMs = 6 * 60 * 60_000;
/** After the start, so that a restart has nothing to wait for. */
const firstMs = 60_000;

export interface JanitorOptions {
  rows: Rows;
  blobs: Blobs;
}

/** One round; returns how many contents went. */
export async function tidy({ rows, blobs }: JanitorOptions, youngestMs = graceMs): Promise<{ contents: number }> {
  return { contents: await blobs.sweep((sha256) => rows.unreferenced(sha256), youngestMs) };
}

/** A minute after the start and every six hours, until the signal. */
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
