// Inspects and kills process trees through /proc: on Linux only; elsewhere it finds nothing.
// No other module reads /proc for this.
import { readdirSync, readFileSync } from "node:fs";

const pageBytes = 4096;

export interface TreeUsage {
  processes: number;
  residentBytes: number;
}

/** Current usage of a command: the tree below its first process, and its session. Counting stops above `maxProcesses`. */
export function usageOf(rootPid: number, maxProcesses: number): TreeUsage {
  const usage: TreeUsage = { processes: 0, residentBytes: 0 };
  const counted = new Set<number>();
  // Orphans leave the tree but not the session. In the sandbox they stay in the tree, even in a new session.
  const pending = [rootPid, ...membersOfSession(rootPid)];
  for (let pid = pending.pop(); pid !== undefined; pid = pending.pop()) {
    if (counted.has(pid)) continue;
    counted.add(pid);
    usage.processes += 1;
    if (usage.processes > maxProcesses) break;
    usage.residentBytes += residentBytesOf(pid);
    pending.push(...childrenOf(pid));
  }
  return usage;
}

/** Processes with this session id. */
function membersOfSession(session: number): number[] {
  return allProcesses().filter((pid) => {
    try {
      // The name in parentheses may contain any character; state, parent, group and session follow it.
      const line = readFileSync(`/proc/${pid}/stat`, "latin1");
      return Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[3]) === session;
    } catch {
      return false;
    }
  });
}

function allProcesses(): number[] {
  try {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
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

const maxKillRounds = 20;

/** Kills every process with the mark in its environment, including those that left the group or started meanwhile. */
export function killMarked(mark: string): void {
  for (let round = 0; round < maxKillRounds; round++) {
    if (!killOnce(mark)) return;
  }
}

/** Returns whether it found a process to kill. */
function killOnce(mark: string): boolean {
  let found = false;
  for (const pid of allProcesses()) {
    try {
      if (!readFileSync(`/proc/${pid}/environ`, "latin1").includes(mark)) continue;
      process.kill(pid, "SIGKILL");
      found = true;
    } catch {
      // It belongs to another user, or has ended.
    }
  }
  return found;
}

/** Sends a signal to a process group; false when the group is empty. */
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
