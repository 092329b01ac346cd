// Runs a job in its own worker thread and terminates the thread when the job exceeds its time or memory limit. Then no job can block the
// service or exhaust its memory. Independent of the kind of job.
import { Worker } from "node:worker_threads";

export interface ThreadLimits {
  /** Maximum wall time. */
  timeoutMs: number;
  /** Maximum total size of the thread's heap and external buffers. */
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

/** Interval of the memory checks. */
const memoryCheckMs = 50;
/** False in a build, whose modules are JavaScript. */
const isSource = import.meta.url.endsWith(".ts");

/**
 * Sends the job to a new thread and returns the first message from the thread. `moduleUrl`: URL of the thread's module without extension.
 * Rejects with ThreadLimitError, with the signal's reason if the signal is aborted first, or with the thread's error.
 */
export async function runInThread<Result>(
  moduleUrl: URL,
  job: unknown,
  { timeoutMs, maxMemoryBytes }: ThreadLimits,
  signal: AbortSignal,
): Promise<Result> {
  signal.throwIfAborted();
  const thread = new Worker(new URL(`${moduleUrl.href}${isSource ? ".ts" : ".js"}`), {
    env: {},
    // Keeps what a parser prints about its input out of the service's log.
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: Math.ceil(maxMemoryBytes / 1024 / 1024) },
  });
  const { promise, resolve, reject } = Promise.withResolvers<Result>();
  const abort = () => reject(signal.reason);
  const timeout = setTimeout(() => reject(new ThreadLimitError("time")), timeoutMs);
  // `resourceLimits` does not include external buffers.
  const checkMemory = async () => {
    // Rejects when the thread has just ended.
    const statistics = await thread.getHeapStatistics().catch(() => undefined);
    if (statistics !== undefined && statistics.used_heap_size + statistics.external_memory > maxMemoryBytes) {
      reject(new ThreadLimitError("memory"));
    }
  };
  const memoryChecks = setInterval(() => void checkMemory(), memoryCheckMs);
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
    clearTimeout(timeout);
    clearInterval(memoryChecks);
    signal.removeEventListener("abort", abort);
    await thread.terminate();
  }
}
