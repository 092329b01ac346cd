// Writers of one file take turns, also those of other replicas on the same volume: a lock is a file that only one can make. Who reads a file
// and writes it back would else take back what another has written in between. Commands take no locks.
import { createHash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { link, lstat, open, readFile, rename, unlink, utimes, type FileHandle } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { mainWorkspaceId } from "@parley/contracts";
import { errnoOf, WorkspaceError } from "./errors.ts";
import { shown, splitPath } from "./paths.ts";
import { inDirectory, type Place, type Workspace } from "./workspace.ts";

const lockFolder = ".parley/locks";
/** Who holds a lock says so again and again; who has said nothing for so long has died. */
const staleMs = 12_000;
const signOfLifeMs = 2_000;
/** Longer than the dead hold up anybody. */
const waitMs = 20_000;
const pollMs = 15;
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;

/** Who writes: the call, the same in each of its lives. What an earlier life of it has locked is its own. */
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
    // In one order for everybody: nobody waits for one who waits for him.
    for (const name of [...names].sort()) held.push(await lock(workspace, name, writer));
    return await work();
  } finally {
    for (const release of held.toReversed()) await release();
  }
}

/** One name for a file, whichever links lead to it. */
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
  // Two workspaces have files of the same name: their locks differ also where they lie in one folder.
  const of = workspace.id === mainWorkspaceId ? name : `${workspace.id}\0${name}`;
  const file = createHash("sha256").update(of).digest("hex").slice(0, 32);
  const place = await workspace.resolve(`${lockFolder}/${file}`, { createParents: true });
  const path = inDirectory(place.directory, place.name);
  const mine = writer.idempotencyKey;
  try {
    await takeInTurn(place, path, mine, name, writer.signal);
  } catch (error) {
    await place[Symbol.asyncDispose]();
    throw error;
  }
  const life = setInterval(() => void utimes(path, new Date(), new Date()).catch(() => undefined), signOfLifeMs);
  life.unref();
  return async () => {
    clearInterval(life);
    // Taken over by somebody who thought that we had died: it is his now.
    const holder = await readFile(path, "utf8").catch(() => "");
    if (holder === mine) await unlink(path).catch(() => undefined);
    await place[Symbol.asyncDispose]();
  };
}

async function takeInTurn(place: Place, path: string, mine: string, name: string, signal: AbortSignal): Promise<void> {
  const until = performance.now() + waitMs;
  while (!(await take(path, mine)) && (await readFile(path, "utf8").catch(() => "")) !== mine) {
    signal.throwIfAborted();
    if (performance.now() > until) {
      throw new WorkspaceError("changed", `"${shown(name)}" is being written by another call; try again.`);
    }
    if (!(await breakStale(place, path))) await delay(pollMs * (0.5 + Math.random()));
  }
}

/** False: somebody has it. */
async function take(path: string, mine: string): Promise<boolean> {
  let handle: FileHandle;
  try {
    handle = await open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600);
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  }
  try {
    await handle.writeFile(mine);
  } finally {
    await handle.close();
  }
  return true;
}

/** Removes a lock whose holder has died; true when there is none any more. */
async function breakStale(place: Place, path: string): Promise<boolean> {
  try {
    if (!(await isStale(path))) return false;
    // By a new name: what is taken away is looked at once more, for another may have been as quick, and a third have taken the lock.
    const aside = inDirectory(place.directory, `.${place.name}-${randomUUID()}`);
    await rename(path, aside);
    const stale = await isStale(aside);
    if (!stale) await link(aside, path).catch(() => undefined);
    await unlink(aside);
    return stale;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return true;
    throw error;
  }
}

async function isStale(path: string): Promise<boolean> {
  return Date.now() - (await lstat(path)).mtimeMs >= staleMs;
}
