// Writers of one file take turns, also those of other replicas on the same volume: a lock is a file that only one can make. Without it,
// a call that reads a file and writes it back would undo what another has written in between. Commands take no locks.
//
// The locks are outside of the workspace, where no sandboxed command reaches them. Commands without a sandbox do: so nothing here
// follows a link, waits for a pipe or reads more than a lock holds, and what is no lock is removed.
import { createHash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { link, lstat, mkdir, open, rename, rm, unlink, utimes, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { mainWorkspaceId } from "@parley/contracts";
import { errnoOf, WorkspaceError } from "./errors.ts";
import { shown, splitPath } from "./paths.ts";
import type { Workspace } from "./workspace.ts";

/** The holder of a lock renews it all the time; a lock that was not renewed for so long has lost its holder. */
const staleMs = 12_000;
const renewMs = 2_000;
/** Longer than a lost holder holds up anybody. */
const waitMs = 20_000;
const pollMs = 15;
/** More than any holder writes into its lock. */
const maxLockBytes = 1024;
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** The call that writes, the same in each of its runs: what an earlier run of it has locked is its own. */
interface Writer {
  idempotencyKey: string;
  signal: AbortSignal;
}

/** Runs work while nobody else writes to these paths. Throws WorkspaceError when one is not free in time, and the signal's reason. */
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
    // In one order for everybody: two calls never wait for each other.
    for (const name of [...names].sort()) held.push(await lock(workspace, name, writer));
    return await work();
  } finally {
    for (const release of held.toReversed()) await release();
  }
}

/** One name for a file, by any links that lead to it. */
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
  // Two workspaces have files of the same name: their locks differ also where they are in one folder.
  const of = workspace.id === mainWorkspaceId ? name : `${workspace.id}\0${name}`;
  const path = join(folder, createHash("sha256").update(of).digest("hex").slice(0, 32));
  const mine = writer.idempotencyKey;
  await takeInTurn(folder, path, mine, name, writer.signal);
  const renewal = setInterval(() => void utimes(path, new Date(), new Date()).catch(() => undefined), renewMs);
  renewal.unref();
  return async () => {
    clearInterval(renewal);
    // Another call may have taken it over as lost: then it is that call's lock.
    if ((await holderOf(path)) === mine) await unlink(path).catch(() => undefined);
  };
}

async function takeInTurn(
  folder: string,
  path: string,
  mine: string,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const until = performance.now() + waitMs;
  while (!(await take(folder, path, mine)) && (await holderOf(path)) !== mine) {
    signal.throwIfAborted();
    if (performance.now() > until) {
      throw new WorkspaceError("changed", `"${shown(name)}" is being written by another call; try again.`);
    }
    if (!(await breakStale(folder, path))) await delay(pollMs * (0.5 + Math.random()));
  }
}

/** False: another call has it. */
async function take(folder: string, path: string, mine: string): Promise<boolean> {
  let handle: FileHandle;
  try {
    handle = await open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600);
  } catch (error) {
    const code = errnoOf(error);
    if (code === "EEXIST") return false;
    if (code !== "ENOENT") throw error;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return take(folder, path, mine);
  }
  try {
    await handle.writeFile(mine);
  } finally {
    await handle.close();
  }
  return true;
}

/** What the holder wrote; undefined where there is no lock, or something that is none. */
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

/** Removes a lock that lost its holder, or what is no lock; true when there is none any more. */
async function breakStale(folder: string, path: string): Promise<boolean> {
  try {
    if (!(await isStale(path))) return false;
    // By a new name: what is taken away is checked again, because another call may have removed it first, and a third one taken the lock.
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

/** A time in the future is as old as one in the past: nobody renews with it. */
async function isStale(path: string): Promise<boolean> {
  const stats = await lstat(path);
  return !stats.isFile() || stats.size > maxLockBytes || Math.abs(Date.now() - stats.mtimeMs) >= staleMs;
}
