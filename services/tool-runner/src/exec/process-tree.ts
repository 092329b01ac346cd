// Looks at and kills the processes below one: through /proc, so on Linux only; elsewhere it sees nothing. Nobody else reads
// /proc for this.
import { readdirSync, readFileSync } from "node:fs";

const pageBytes = 4096;

export interface TreeUsage {
  processes: number;
  residentBytes: number;
}

/** What the tree below a process uses now; counting stops above `maxProcesses`. */
export function usageOf(rootPid: number, maxProcesses: number): TreeUsage {
  const usage: TreeUsage = { processes: 0, residentBytes: 0 };
  const waiting = [rootPid];
  for (let pid = waiting.pop(); pid !== undefined; pid = waiting.pop()) {
    usage.processes += 1;
    if (usage.processes > maxProcesses) break;
    usage.residentBytes += residentBytesOf(pid);
    waiting.push(...childrenOf(pid));
  }
  return usage;
}

export function childrenOf(pid: number): number[] {
  const children: number[] = [];
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const line = readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8");
      children.push(...line.split(" ").filter(Boolean).map(Number));
    }
  } catch {
    // The process has ended, or this is not Linux.
  }
  return children;
}

/** Kills every process whose environment carries the mark, also those that left the process group. */
export function killMarked(mark: string): void {
  let pids: string[];
  try {
    pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return;
  }
  for (const pid of pids) {
    try {
      if (readFileSync(`/proc/${pid}/environ`, "latin1").includes(mark)) process.kill(Number(pid), "SIGKILL");
    } catch {
      // Another user's, or gone.
    }
  }
}

/** Sends a signal to a process group; false when it has nobody. */
export function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-pid, signal);
    return true;
  } catch {
    return false;
  }
}

function residentBytesOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1] ?? 0) * pageBytes;
  } catch {
    return 0;
  }
}
