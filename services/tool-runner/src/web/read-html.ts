// Extracts a page's text in a separate thread, which is terminated when it exceeds its time or memory limit: no page can block
// the service.
import { Worker } from "node:worker_threads";
import type { Article, ReadingJob } from "./extract-article.ts";

const threadFile = new URL(
  import.meta.url.endsWith(".ts") ? "./extract-article-worker.ts" : "./extract-article-worker.js",
  import.meta.url,
);
const maxMemoryMb = 512;

/** Rejects with the signal's reason when aborted first, and when the thread exceeds its memory limit. */
export async function readHtmlInThread(job: ReadingJob, signal: AbortSignal): Promise<Article> {
  signal.throwIfAborted();
  const thread = new Worker(threadFile, {
    env: {},
    workerData: job,
    resourceLimits: { maxOldGenerationSizeMb: maxMemoryMb },
  });
  const { promise, resolve, reject } = Promise.withResolvers<Article>();
  const abort = () => reject(signal.reason);
  thread.once("message", resolve);
  thread.once("error", reject);
  thread.once("exit", (code) => reject(new Error(`page reader thread ended with exit code ${code}`)));
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await promise;
  } finally {
    signal.removeEventListener("abort", abort);
    await thread.terminate();
  }
}
