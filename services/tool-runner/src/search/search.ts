// Runs searches in threads of their own and ends a thread whose time is over: no pattern can hang the service. A thread that
// has answered is kept for the next search for a while: starting one takes longer than most searches.
import { Worker } from "node:worker_threads";
import type { SearchAnswer, SearchJob } from "./job.ts";

export interface Searcher extends AsyncDisposable {
  /** Rejects with the signal's reason when it is aborted first. */
  run(job: SearchJob, signal: AbortSignal): Promise<SearchAnswer>;
}

/** From source the thread's file is TypeScript too. */
const threadFile = new URL(
  import.meta.url.endsWith(".ts") ? "./search-thread.ts" : "./search-thread.js",
  import.meta.url,
);
const maxIdleThreads = 2;
const idleMs = 60_000;

export function createSearcher(): Searcher {
  const idle: { thread: Worker; timer: NodeJS.Timeout }[] = [];

  const take = () => {
    const kept = idle.pop();
    clearTimeout(kept?.timer);
    kept?.thread.ref();
    return kept?.thread ?? startThread();
  };
  const keep = (thread: Worker) => {
    if (idle.length >= maxIdleThreads) {
      void thread.terminate();
      return;
    }
    const timer = setTimeout(() => {
      idle.splice(idle.indexOf(entry), 1);
      void thread.terminate();
    }, idleMs).unref();
    const entry = { thread, timer };
    // A thread without work keeps no process alive.
    thread.unref();
    idle.push(entry);
  };

  return {
    run: async (job, signal) => {
      signal.throwIfAborted();
      const thread = take();
      try {
        const answer = await ask(thread, job, signal);
        keep(thread);
        return answer;
      } catch (error) {
        await thread.terminate();
        throw error;
      }
    },
    [Symbol.asyncDispose]: async () => {
      for (const { thread, timer } of idle.splice(0)) {
        clearTimeout(timer);
        await thread.terminate();
      }
    },
  };
}

function startThread(): Worker {
  const thread = new Worker(threadFile, { env: {}, resourceLimits: { maxOldGenerationSizeMb: 256 } });
  // One that fails while nobody waits for it must not end the service.
  thread.on("error", () => undefined);
  return thread;
}

/** Rejects when the signal is aborted, and when the thread fails or ends; it must be ended then. */
async function ask(thread: Worker, job: SearchJob, signal: AbortSignal): Promise<SearchAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<SearchAnswer>();
  const abort = () => reject(signal.reason);
  const end = (code: number) => reject(new Error(`the search thread ended with ${code}`));
  thread.on("message", resolve);
  thread.on("error", reject);
  thread.on("exit", end);
  signal.addEventListener("abort", abort, { once: true });
  try {
    thread.postMessage(job);
    return await promise;
  } finally {
    signal.removeEventListener("abort", abort);
    thread.off("message", resolve);
    thread.off("error", reject);
    thread.off("exit", end);
  }
}
