// A thread that kills the process when its event loop is stuck past the lease, which the loop itself cannot detect.
// Renewal runs on the main thread, because otherwise a hung leader would stay leader.
import { Worker } from "node:worker_threads";

/** Extra time after the deadline: normally the event loop ends the process first. */
const graceMs = 500;
const checkMs = 100;

// Inline source, so that the thread loads no modules: it needs 1 MB instead of 30.
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
    // The thread has its own `performance`; both share the hrtime clock.
    const inMs = BigInt(Math.round((next - performance.now()) * 1e6));
    Atomics.store(shared, 0, process.hrtime.bigint() + inMs);
  };
  extend(deadlineMs);
  const worker = new Worker(threadSource, {
    eval: true,
    workerData: { shared, graceMs, checkMs },
    // Small, because the thread only reads a clock.
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
