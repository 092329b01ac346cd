// CPU and elapsed time of test files, to keep the weights of test-processes.ts current: `PARLEY_TEST_TIMES=<file> npm test` appends a JSON line per file.

import { appendFileSync, readFileSync } from "node:fs";

/** Seconds of CPU time of this process and of its children that have ended; undefined where there is no /proc. */
export function cpuSeconds(): number | undefined {
  let stat: string;
  try {
    stat = readFileSync("/proc/self/stat", "latin1");
  } catch {
    return undefined;
  }
  // After the name, which may contain spaces: utime, stime, cutime and cstime, in ticks of 10 ms.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100;
}

/** Records the seconds since the previous record of this process, of CPU time and elapsed. `name`: of the test file, relative to the repository. */
export function timesRecorder(path: string): (name: string) => void {
  let cpu = 0;
  let since = performance.now();
  return (name) => {
    const [used, now] = [cpuSeconds() ?? 0, performance.now()];
    const record = { name, cpu: Number((used - cpu).toFixed(2)), elapsed: Number(((now - since) / 1000).toFixed(2)) };
    appendFileSync(path, `${JSON.stringify(record)}\n`);
    [cpu, since] = [used, now];
  };
}
