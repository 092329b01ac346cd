// Extracts a page's text in a thread: no page can block the service.
import { runInThread } from "../worker/run-in-thread.ts";
import type { Article, ReadingJob } from "./extract-article.ts";

/** The deadline of the call ends the thread earlier. */
const limits = { timeoutMs: 10 * 60_000, maxMemoryBytes: 512 * 1024 * 1024 };

/** Rejects with the signal's reason when aborted first, and when the thread exceeds its memory limit. */
export function readHtmlInThread(job: ReadingJob, signal: AbortSignal): Promise<Article> {
  return runInThread(new URL("./extract-article-worker", import.meta.url), job, limits, signal);
}
