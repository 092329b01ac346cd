// Serializes writers of one file, across replicas on the same volume: a lock is a file created exclusively. Without it, a call that
// reads a file and writes it back would overwrite a concurrent change. Commands take no locks.
//
// Locks are outside the workspace, out of reach of sandboxed commands. Unsandboxed commands can reach them: so nothing here follows
// a link, blocks on a pipe or reads more than a lock can contain, and anything that is not a lock is removed.
import { createHash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { link, lstat, mkdir, open, rename, rm, unlink, utimes, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { mainWorkspaceId } from "@parley/contracts";
import { errnoOf, WorkspaceError } from "./errors.ts";
import { displayPath, splitPath } from "./paths.ts";
import type { Workspace } from "./workspace.ts";

/** A holder renews its lock regularly; a lock without renewal for this long has lost its holder. */
const staleMs = 12_000;
const renewMs = 2_000;
/** Longer than a lost holder can block others. */
const waitMs = 20_000;
const pollMs = 15;
/** More than any holder writes into its lock. */
const maxLockBytes = 1024;
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** The writing call, the same in each of its runs: a lock of an earlier run belongs to it. */
interface Writer {
  idempotencyKey: string;
  signal: AbortSignal;
}

/** Runs work while holding the locks of these paths. Throws WorkspaceError when one is not free in time, and the signal's reason. */
export async function whileLocked<T>(
  workspace: Workspace,
  paths: readonly string[],
  writer: Writer,
  work: () => Promise<T>,
): Promise<T> {
  const names = new Set<string>();
  for (const path of paths) names.add(await nameOf(workspace, path));
  const held: (() => Promise<void>)[] = [];
  try {
    // A fixed order prevents deadlocks between calls.
    for (const name of [...names].sort()) held.push(await lock(workspace, name, writer));
    return await work();
  } finally {
    for (const release of held.toReversed()) await release();
  }
}

/** The canonical name of a file, with all links resolved. */
async function nameOf(workspace: Workspace, path: string): Promise<string> {
  try {
    await using place = await workspace.resolve(path);
    return place.relative;
  } catch (error) {
    if (error instanceof WorkspaceError && error.code === "not_found") return splitPath(path, workspace.root).join("/");
    throw error;
  }
}

async function lock(workspace: Workspace, name: string, writer: Writer): Promise<() => Promise<void>> {
  const { lockFolder: folder } = workspace;
  // Files of the same name in two workspaces need different locks even in one folder.
  const of = workspace.id === mainWorkspaceId ? name : `${workspace.id}\0${name}`;
  const path = join(folder, createHash("sha256").update(of).digest("hex").slice(0, 32));
  const ownKey = writer.idempotencyKey;
  await acquire(folder, path, ownKey, name, writer.signal);
  const renewal = setInterval(() => void utimes(path, new Date(), new Date()).catch(() => undefined), renewMs);
  renewal.unref();
  return async () => {
    clearInterval(renewal);
    // Another call may have taken the lock over as stale; then it must stay.
    if ((await holderOf(path)) === ownKey) await unlink(path).catch(() => undefined);
  };
}

/** Waits for the lock. Throws WorkspaceError after `waitMs`, and the signal's reason. */
async function acquire(folder: string, path: string, ownKey: string, name: string, signal: AbortSignal): Promise<void> {
  const until = performance.now() + waitMs;
  while (!(await tryAcquire(folder, path, ownKey)) && (await holderOf(path)) !== ownKey) {
    signal.throwIfAborted();
    if (performance.now() > until) {
      throw new WorkspaceError("changed", `"${displayPath(name)}" is being written by another call; try again.`);
    }
    if (!(await breakStale(folder, path))) await delay(pollMs * (0.5 + Math.random()));
  }
}

/** Creates the lock with the own key; false when another call holds it. */
async function tryAcquire(folder: string, path: string, ownKey: string): Promise<boolean> {
  let handle: FileHandle;
  try {
    handle = await open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600);
  } catch (error) {
    const code = errnoOf(error);
    if (code === "EEXIST") return false;
    if (code !== "ENOENT") throw error;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return tryAcquire(folder, path, ownKey);
  }
  try {
    await handle.writeFile(ownKey);
  } finally {
    await handle.close();
  }
  return true;
}

/** The lock's content; undefined when there is no lock, or the file is not a lock. */
async function holderOf(path: string): Promise<string | undefined> {
  try {
    const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      if (!(await handle.stat()).isFile()) return undefined;
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(maxLockBytes + 1), 0, maxLockBytes + 1, 0);
      return bytesRead > maxLockBytes ? undefined : buffer.toString("utf8", 0, bytesRead);
    } finally {
      await handle.close();
    }
  } catch {
    return undefined;
  }
}

/** Removes a stale lock, or a file that is not a lock; true when none is left. */
async function breakStale(folder: string, path: string): Promise<boolean> {
  try {
    if (!(await isStale(path))) return false;
    // Renamed first, then checked again: meanwhile another call may have removed the stale lock and a third one taken a new one.
    const aside = join(folder, `.stale-${randomUUID()}`);
    await rename(path, aside);
    const stale = await isStale(aside);
    if (!stale) await link(aside, path).catch(() => undefined);
    await rm(aside, { recursive: true, force: true });
    return stale;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return true;
    throw error;
  }
}

/** A timestamp in the future counts as old, too: no holder renews with it. */
async function isStale(path: string): Promise<boolean> {
  const stats = await lstat(path);
  return !stats.isFile() || stats.size > maxLockBytes || Math.abs(Date.now() - stats.mtimeMs) >= staleMs;
}
