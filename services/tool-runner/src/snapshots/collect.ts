// Removes content that no checkpoint refers to; the store deletes the checkpoints. Any number of replicas may run it.
import type { ContentStore } from "./content-store.ts";
import type { CheckpointClient } from "./checkpoint-client.ts";

/** Younger content may belong to a row that is still being written. */
const graceMs = 60 * 60_000;
const everyMs = 6 * 60 * 60_000;
/** Delay of the first round, so that it does not slow down a restart. */
const firstMs = 60_000;

export interface CollectionOptions {
  rows: CheckpointClient;
  blobs: ContentStore;
}

/** Runs one round and returns how many contents were removed. */
export async function collect({ rows, blobs }: CollectionOptions, youngestMs = graceMs): Promise<{ contents: number }> {
  return { contents: await blobs.sweep((sha256) => rows.unreferenced(sha256), youngestMs) };
}

/** Runs one minute after the start and then every six hours, until the signal is aborted. */
export function startCollection(
  options: CollectionOptions,
  onEnd: (went: { contents: number }) => void,
  onFailure: (error: unknown) => void,
  signal: AbortSignal,
): void {
  const run = () => void collect(options).then(onEnd, onFailure);
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
