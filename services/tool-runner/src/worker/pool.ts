// Runs jobs in worker threads and terminates a thread whose job is aborted, so no job can block the service's main thread. Idle
// threads are reused for a while, because starting one takes longer than most jobs. It does not know what a job is.
import { Worker } from "node:worker_threads";

export interface WorkerPool<Job, Answer> extends AsyncDisposable {
  /** Rejects with the signal's reason on abort, and with the thread's error when the thread fails. */
  run(job: Job, signal: AbortSignal): Promise<Answer>;
}

const maxIdleThreads = 2;
const idleMs = 60_000;

/** `file`: the thread's module without extension (.ts when run from source). `maxHeapMiB`: heap limit per thread. */
export function createWorkerPool<Job, Answer>(file: URL, maxHeapMiB: number): WorkerPool<Job, Answer> {
  const idle: { thread: Worker; timer: NodeJS.Timeout }[] = [];
  const threadFile = new URL(`${file.href}${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`);

  const take = () => {
    const kept = idle.pop();
    clearTimeout(kept?.timer);
    kept?.thread.ref();
    return kept?.thread ?? startThread(threadFile, maxHeapMiB);
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
    // Idle threads must not keep the process alive.
    thread.unref();
    idle.push(entry);
  };

  return {
    run: async (job, signal) => {
      signal.throwIfAborted();
      const thread = take();
      try {
        const answer = await request<Answer>(thread, job, signal);
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

function startThread(file: URL, maxOldGenerationSizeMb: number): Worker {
  const thread = new Worker(file, { env: {}, resourceLimits: { maxOldGenerationSizeMb } });
  // An idle thread that fails must not end the service.
  thread.on("error", () => undefined);
  return thread;
}

/** Rejects on abort, and when the thread fails or exits; the caller must then terminate the thread. */
async function request<Answer>(thread: Worker, job: unknown, signal: AbortSignal): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const abort = () => reject(signal.reason);
  const end = (code: number) => reject(new Error(`the worker thread ended with ${code}`));
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
