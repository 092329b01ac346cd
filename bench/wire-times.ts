// Loaded into each service with `node --import` by rows/waterfall.ts: records when the process writes to a socket, and to which port. The
// record is written at the end of the process, so that recording does not disturb what is measured.
import { writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";

type Write = (this: Socket & { server?: unknown }, ...args: unknown[]) => unknown;

const folder = process.env["PARLEY_BENCH_WIRE"];
/** Microseconds of the monotonic clock, which is the same in all processes of a machine, and the port; 0: of a caller. */
const writes: [number, number][] = [];
const prototype = Socket.prototype as unknown as Record<string, Write | undefined>;

for (const name of ["_write", "_writev"]) {
  const write = prototype[name];
  if (write === undefined) throw new Error(`this version of Node has no Socket.prototype.${name}`);
  prototype[name] = function (...args) {
    const isCaller = this.server !== undefined && this.server !== null;
    writes.push([Number(process.hrtime.bigint() / 1_000n), isCaller ? 0 : (this.remotePort ?? 0)]);
    return write.apply(this, args);
  };
}

if (folder !== undefined) {
  process.on("exit", () => {
    const service = /services\/([a-z-]+)\//.exec(process.argv[1] ?? "")?.[1];
    if (service !== undefined) writeFileSync(join(folder, `${service}.json`), JSON.stringify(writes));
  });
}
