// A lock file: the process that links it owns it. The file names its owner, so the lock of a dead process can be recognised.

import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

import { isAlive, nameOf, type ProcessName } from "./processes.ts";

export interface FileLock extends Disposable {
  release(): void;
}

/** The lock for the removal of a stale lock is held for microseconds; an older one belongs to a dead process. */
const breakerMaxAgeMs = 10_000;

/** Acquires the lock without waiting, or returns the living process that holds it. */
export function tryLock(path: string): FileLock | { readonly heldBy: ProcessName } {
  mkdirSync(dirname(path), { recursive: true });
  for (;;) {
    if (linkOwned(path)) {
      let held = true;
      const release = (): void => {
        if (held) rmSync(path, { force: true });
        held = false; // at a second call another process may own it
      };
      return { release, [Symbol.dispose]: release };
    }
    const holder = holderOf(path);
    if (holder !== null && isAlive(holder)) return { heldBy: holder };
    breakStale(path);
  }
}

/** Waits for the lock, runs `work`, and releases it. The holder may be another process, so it polls every 50 ms. */
export async function withLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  for (;;) {
    const lock = tryLock(path);
    if ("heldBy" in lock) {
      await delay(50);
      continue;
    }
    try {
      return await work();
    } finally {
      lock.release();
    }
  }
}

/** The process named in the lock file, dead or alive; null when there is no lock. */
export function holderOf(path: string): ProcessName | null {
  try {
    const value: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (typeof value !== "object" || value === null) return null;
    const { pid, started } = value as Partial<ProcessName>;
    return typeof pid === "number" && typeof started === "string" ? { pid, started } : null;
  } catch {
    return null;
  }
}

/** Links a file that already names this process, so the lock never exists without an owner. */
function linkOwned(path: string): boolean {
  const draft = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
  try {
    writeFileSync(draft, JSON.stringify(nameOf(process.pid)), { mode: 0o600 });
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Removes a dead process's lock. Two processes may try at once, so the removal has its own lock and checks again. */
function breakStale(path: string): void {
  const breaker = `${path}.break`;
  if (!linkOwned(breaker)) {
    try {
      if (Date.now() - statSync(breaker).mtimeMs > breakerMaxAgeMs) rmSync(breaker, { force: true });
    } catch {
      // The other process has finished.
    }
    return;
  }
  try {
    const holder = holderOf(path);
    if (holder === null || !isAlive(holder)) rmSync(path, { force: true });
  } finally {
    rmSync(breaker, { force: true });
  }
}
