// Loaded into each service with `node --import` by rows/waterfall.ts: records when the process writes to a socket, and to which port, and its
// collections of garbage. The record is written at the end of the process, so that recording does not disturb what is measured.
import { writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { PerformanceObserver } from "node:perf_hooks";

type Write = (this: Socket & { server?: unknown }, ...args: unknown[]) => unknown;

const folder = process.env["PARLEY_BENCH_WIRE"];
/** Microseconds of the monotonic clock, which is the same in all processes of a machine, and the port; 0: of a caller. */
const writes: [number, number][] = [];
/** Begin and end of each collection, in microseconds of the same clock. */
const collections: [number, number][] = [];
const nowUs = (): number => Number(process.hrtime.bigint() / 1_000n);
const originUs = nowUs() - performance.now() * 1_000;
new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries())
    collections.push([originUs + startTime * 1_000, originUs + (startTime + duration) * 1_000]);
}).observe({ entryTypes: ["gc"] });
const prototype = Socket.prototype as unknown as Record<string, Write | undefined>;

for (const name of ["_write", "_writev"]) {
  const write = prototype[name];
  if (write === undefined) throw new Error(`this version of Node has no Socket.prototype.${name}`);
  prototype[name] = function (...args) {
    const isCaller = this.server !== undefined && this.server !== null;
    writes.push([nowUs(), isCaller ? 0 : (this.remotePort ?? 0)]);
    return write.apply(this, args);
  };
}

if (folder !== undefined) {
  process.on("exit", () => {
    const service = /services\/([a-z-]+)\//.exec(process.argv[1] ?? "")?.[1];
    if (service !== undefined) writeFileSync(join(folder, `${service}.json`), JSON.stringify({ writes, collections }));
  });
}
