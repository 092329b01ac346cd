// Identifies processes by pid and start time: the system reuses a pid alone.

import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

export interface ProcessName {
  readonly pid: number;
  /** Start time in the system's format (clock ticks since boot on Linux); only compared for equality. */
  readonly started: string;
}

/** The start time of a living process; null if no process has this pid (a zombie counts as ended). */
function startedAt(pid: number): string | null {
  if (process.platform !== "linux") {
    const ps = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" });
    return ps.stdout.trim() || null;
  }
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return null;
  }
  // The second field is the command in parentheses and may itself contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? null : (fields[19] ?? null);
}

export function nameOf(pid: number): ProcessName | null {
  const started = startedAt(pid);
  return started === null ? null : { pid, started };
}

export function isAlive(name: ProcessName): boolean {
  return startedAt(name.pid) === name.started;
}

/** Sends a signal; false if the process has ended. */
export function signal(name: ProcessName, what: NodeJS.Signals): boolean {
  if (!isAlive(name)) return false;
  try {
    process.kill(name.pid, what);
    return true;
  } catch {
    return false;
  }
}

/** Resolves true when the process has ended, false after `timeoutMs`. It polls: the process may not be a child. */
export async function waitGone(name: ProcessName, timeoutMs: number): Promise<boolean> {
  const until = performance.now() + timeoutMs;
  while (isAlive(name)) {
    if (performance.now() > until) return false;
    await delay(10);
  }
  return true;
}

/** Asks a process to end (SIGTERM), and resolves true when it has ended, false after `timeoutMs`. */
export async function requestEnd(name: ProcessName, timeoutMs: number): Promise<boolean> {
  return !signal(name, "SIGTERM") || waitGone(name, timeoutMs);
}

/** Sends `ask` to a process that may not be a child, and SIGKILL after `graceMs`. */
export async function endProcess(name: ProcessName, ask: NodeJS.Signals, graceMs: number): Promise<void> {
  if (!signal(name, ask)) return;
  signal(name, "SIGCONT"); // a stopped process would not handle the signal
  if (await waitGone(name, graceMs)) return;
  signal(name, "SIGKILL");
  await waitGone(name, graceMs);
}

/** Living processes whose working directory is `folder` (Linux; empty elsewhere). */
export function processesIn(folder: string): ProcessName[] {
  if (process.platform !== "linux") return [];
  const found: ProcessName[] = [];
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry);
    if (!Number.isInteger(pid)) continue;
    try {
      if (readlinkSync(`/proc/${pid}/cwd`) !== folder) continue;
    } catch {
      continue; // gone meanwhile, or another user's
    }
    const name = nameOf(pid);
    if (name !== null) found.push(name);
  }
  return found;
}

/** The process that listens on a loopback TCP port, from /proc: `node (pid 4711)`; null if unknown. */
export function listenerOf(port: number): string | null {
  if (process.platform !== "linux") return null;
  const hexPort = port.toString(16).toUpperCase().padStart(4, "0");
  const inodes = new Set<string>();
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    let text: string;
    try {
      text = readFileSync(table, "utf8");
    } catch {
      continue;
    }
    for (const line of text.split("\n").slice(1)) {
      const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
      if (state === "0A" && inode !== undefined && local?.endsWith(`:${hexPort}`)) inodes.add(`socket:[${inode}]`);
    }
  }
  if (inodes.size === 0) return null;
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const fds = readdirSync(`/proc/${entry}/fd`);
      const holds = fds.some((fd) => {
        try {
          return inodes.has(readlinkSync(`/proc/${entry}/fd/${fd}`));
        } catch {
          return false;
        }
      });
      if (holds) return `${programOf(entry)} (pid ${entry})`;
    } catch {
      continue; // gone meanwhile, or another user's
    }
  }
  return null;
}

/** The program and, for an interpreter, its script: `node /opt/x/main.js`. Other arguments are omitted because they may contain secrets. */
function programOf(pid: string): string {
  const [program = "?", ...args] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  const script = args.find((arg) => arg !== "" && !arg.startsWith("-"));
  const name = basename(program);
  return /^(node|python|ruby|java|sh|bash)/.test(name) && script !== undefined ? `${name} ${script}` : name;
}
