// A lock that is a file: whoever links it owns it, and it names its owner, so that the lock of a dead process is known for what it is.

import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

import { isAlive, nameOf, type ProcessName } from "./processes.ts";

export interface FileLock extends Disposable {
  release(): void;
}

/** A breaker holds its own lock for microseconds; one older than this belongs to a process that died holding it. */
const BREAKER_MAX_AGE_MS = 10_000;

/** Takes the lock at once, or returns the living process that holds it. */
export function tryLock(path: string): FileLock | { readonly heldBy: ProcessName } {
  mkdirSync(dirname(path), { recursive: true });
  for (;;) {
    if (linkOwned(path)) {
      let held = true;
      const release = (): void => {
        if (held) rmSync(path, { force: true });
        held = false; // by the second call it may be somebody else's
      };
      return { release, [Symbol.dispose]: release };
    }
    const holder = holderOf(path);
    if (holder !== null && isAlive(holder)) return { heldBy: holder };
    breakStale(path);
  }
}

/** Waits for the lock, runs `work`, and releases it. The holder may be in another process, so there is no event: it looks every 50 ms. */
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

/** Links a file that already holds our name: the lock is never seen without its owner. */
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

/** Removes a dead process's lock. Two may see it dead at once, so the removal is itself done under a lock, after a second look. */
function breakStale(path: string): void {
  const breaker = `${path}.break`;
  if (!linkOwned(breaker)) {
    try {
      if (Date.now() - statSync(breaker).mtimeMs > BREAKER_MAX_AGE_MS) rmSync(breaker, { force: true });
    } catch {
      // The other breaker has finished.
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
