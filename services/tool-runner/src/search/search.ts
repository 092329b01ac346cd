// Runs a search in a thread of its own and ends the thread when its time is over: no pattern can hang the service.
import { Worker } from "node:worker_threads";
import type { SearchAnswer, SearchJob } from "./job.ts";

/** From source the thread's file is TypeScript too. */
const threadFile = new URL(
  import.meta.url.endsWith(".ts") ? "./search-thread.ts" : "./search-thread.js",
  import.meta.url,
);

/** Rejects with the signal's reason when it is aborted first. */
export async function runSearch(job: SearchJob, signal: AbortSignal): Promise<SearchAnswer> {
  signal.throwIfAborted();
  const thread = new Worker(threadFile, {
    workerData: job,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  });
  const stop = Promise.withResolvers<never>();
  const abort = () => stop.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    const answer = new Promise<SearchAnswer>((resolve, reject) => {
      thread.once("message", resolve);
      thread.once("error", reject);
      thread.once("exit", (code) => reject(new Error(`the search thread ended with ${code}`)));
    });
    return await Promise.race([answer, stop.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
    await thread.terminate();
  }
}
