// Forgets checkpoints whose time is over, then the content that no checkpoint names any more. Any number of replicas may do it.
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
  /** 0 = checkpoints are kept for ever. */
  retentionDays: number;
}

/** One round; returns what went. */
export async function tidy(
  { rows, blobs, retentionDays }: JanitorOptions,
  youngestMs = graceMs,
): Promise<{ checkpoints: number; contents: number }> {
  const checkpoints = retentionDays === 0 ? 0 : await rows.forget(retentionDays);
  return { checkpoints, contents: await blobs.sweep((sha256) => rows.unreferenced(sha256), youngestMs) };
}

/** A minute after the start and every six hours, until the signal. */
export function keepTidy(
  options: JanitorOptions,
  onEnd: (went: { checkpoints: number; contents: number }) => void,
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
