// Percentiles, and processor time and memory of processes as the kernel counts them.
import { readdirSync, readFileSync } from "node:fs";

/** The value below which `share` of the samples lie. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** Runs `work` `count` times, at most `concurrency` at once. Returns the duration of each run in milliseconds. */
export async function sample(
  count: number,
  concurrency: number,
  work: (lane: number) => Promise<unknown>,
): Promise<number[]> {
  const durations: number[] = [];
  let left = count;
  const lane = async (number: number) => {
    while (left > 0) {
      left -= 1;
      durations.push(await timed(() => work(number)));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, (_, number) => lane(number)));
  return durations;
}

/** All descendants of the given processes, and these processes themselves. */
export function tree(roots: readonly number[]): number[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const parent = Number(stat(Number(entry))?.[1] ?? 0);
    children.set(parent, [...(children.get(parent) ?? []), Number(entry)]);
  }
  const found: number[] = [];
  const visit = (pid: number) => {
    found.push(pid);
    for (const child of children.get(pid) ?? []) visit(child);
  };
  for (const root of roots) visit(root);
  return [...new Set(found)];
}

/** Fields of /proc/<pid>/stat after the name: state, parent, … */
function stat(pid: number): string[] | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ");
  } catch {
    return undefined;
  }
}

/**
 * Processor time of processes, their threads and their ended children so far, in milliseconds; the children because idle connections of
 * PostgreSQL end. A clock tick is 10 ms on Linux.
 */
export function processorMs(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const fields = stat(pid);
    if (fields === undefined) return sum;
    const ticks = fields.slice(11, 15).reduce((total, field) => total + Number(field), 0);
    return sum + ticks * 10;
  }, 0);
}

export interface Memory {
  /** Resident memory; shared pages count in full for each process. */
  rssMib: number;
  /** Proportional memory; each shared page is divided among the processes that share it. */
  pssMib: number;
}

export function memory(pids: readonly number[]): Memory {
  let rss = 0;
  let pss = 0;
  for (const pid of pids) {
    try {
      const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
      rss += Number(/^Rss:\s+(\d+)/m.exec(text)?.[1] ?? 0);
      pss += Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0);
    } catch {
      // The process has ended since the listing.
    }
  }
  return { rssMib: rss / 1024, pssMib: pss / 1024 };
}
