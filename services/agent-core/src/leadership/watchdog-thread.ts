// The thread's side of watchdog.ts.
import { workerData } from "node:worker_threads";

const { shared, graceMs, checkMs } = workerData as { shared: BigInt64Array; graceMs: number; checkMs: number };

setInterval(() => {
  const overdue = process.hrtime.bigint() - Atomics.load(shared, 0);
  // process.exit would end only this thread.
  if (overdue > BigInt(graceMs) * 1_000_000n) process.kill(process.pid, "SIGKILL");
}, checkMs);
