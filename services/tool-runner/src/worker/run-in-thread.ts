// Runs a job in a thread of its own, which is terminated when it exceeds its time or memory limit: no job can block the service or
// exhaust its memory. It does not know what a job is.
import { Worker } from "node:worker_threads";

export interface ThreadLimits {
  /** Wall time. */
  timeoutMs: number;
  /** The thread's heap and external buffers, in total. */
  maxMemoryBytes: number;
}

/** A job exceeded a limit. */
export class ThreadLimitError extends Error {
  override readonly name = "ThreadLimitError";
  readonly limit: "time" | "memory";

  constructor(limit: "time" | "memory") {
    super(`the job exceeded its ${limit} limit`);
    this.limit = limit;
  }
}

/** Interval of the checks of the thread's memory. */
const pollMs = 50;
const isSource = import.meta.url.endsWith(".ts");

/**
 * Sends the job to a new thread and returns its first message. `file`: the thread's module without extension. Rejects with
 * ThreadLimitError, with the signal's reason when it is aborted first, and with the thread's own error.
 */
export async function runInThread<Answer>(
  file: URL,
  job: unknown,
  { timeoutMs, maxMemoryBytes }: ThreadLimits,
  signal: AbortSignal,
): Promise<Answer> {
  signal.throwIfAborted();
  const thread = new Worker(new URL(`${file.href}${isSource ? ".ts" : ".js"}`), {
    env: {},
    // Discards what a parser prints about its input.
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: Math.ceil(maxMemoryBytes / 1024 / 1024) },
  });
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const abort = () => reject(signal.reason);
  const time = setTimeout(() => reject(new ThreadLimitError("time")), timeoutMs);
  // The heap limit does not include external buffers.
  const checkMemory = async () => {
    // Rejects when the thread has just ended.
    const heap = await thread.getHeapStatistics().catch(() => undefined);
    if (heap !== undefined && heap.used_heap_size + heap.external_memory > maxMemoryBytes) {
      reject(new ThreadLimitError("memory"));
    }
  };
  const memory = setInterval(() => void checkMemory(), pollMs);
  thread.once("message", resolve);
  thread.once("error", (error: NodeJS.ErrnoException) =>
    reject(error.code === "ERR_WORKER_OUT_OF_MEMORY" ? new ThreadLimitError("memory") : error),
  );
  thread.once("exit", (code) => reject(new Error(`the thread ended with exit code ${code}`)));
  signal.addEventListener("abort", abort, { once: true });
  try {
    thread.postMessage(job);
    return await promise;
  } finally {
    clearTimeout(time);
    clearInterval(memory);
    signal.removeEventListener("abort", abort);
    await thread.terminate();
  }
}
