// A thread that kills the process when its event loop is stuck past the lease: the loop cannot notice that itself. Renewal
// stays on the main thread, or a hung leader would be kept alive.
import { Worker } from "node:worker_threads";

/** How long after the deadline the thread still waits: the loop ends the process itself in the normal case. */
const graceMs = 500;
const checkMs = 100;

// Plain text, so that the thread loads nothing: it is a megabyte instead of thirty.
const threadSource = `
  const { shared, graceMs, checkMs } = require("node:worker_threads").workerData;
  setInterval(() => {
    const overdueNs = process.hrtime.bigint() - Atomics.load(shared, 0);
    // process.exit would end only this thread.
    if (overdueNs > BigInt(graceMs) * 1000000n) process.kill(process.pid, "SIGKILL");
  }, checkMs);
`;

export interface Watchdog {
  /** Moves the deadline: monotonic milliseconds (`performance.now` of this process). */
  extend(deadlineMs: number): void;
  stop(): Promise<void>;
}

export function startWatchdog(deadlineMs: number): Watchdog {
  const shared = new BigInt64Array(new SharedArrayBuffer(8));
  const extend = (next: number) => {
    // The thread has a `performance` of its own; the clock below both is hrtime.
    const inMs = BigInt(Math.round((next - performance.now()) * 1e6));
    Atomics.store(shared, 0, process.hrtime.bigint() + inMs);
  };
  extend(deadlineMs);
  const worker = new Worker(threadSource, {
    eval: true,
    workerData: { shared, graceMs, checkMs },
    // Small: it only looks at a clock.
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
    stdout: false,
    stderr: false,
  });
  worker.unref();
  return {
    extend,
    async stop() {
      await worker.terminate();
    },
  };
}
