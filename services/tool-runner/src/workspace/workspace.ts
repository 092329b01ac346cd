// The workspace folder, and the only way to open a path in it. A path is walked part by part from an open directory: each part is
// opened below the descriptor of its parent and never through a symbolic link. Links are read and walked the same way, and `..`
// returns to the parent's descriptor. So `..`, links, absolute paths and links swapped in during the walk cannot leave the
// workspace. It does not know what the tools do with a file.
//
// Node has no openat(2). On Linux `/proc/self/fd/<fd>/<name>` is equivalent: `name` in exactly the open directory.
// Elsewhere the walk uses names, so it does not notice a directory that is swapped between two parts.
import { constants, existsSync, type Stats } from "node:fs";
import { lstat, mkdir, open, readlink, realpath, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { mainWorkspaceId } from "@parley/contracts";
import { errnoOf, WorkspaceError } from "./errors.ts";
import { deniedBy, type IsDenied } from "./denied.ts";
import { outside, shown, splitPath, stateFolderOf } from "./paths.ts";
import { WorkspaceQuota, unlimitedQuota, type QuotaRules } from "./quota.ts";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
const byDescriptor = existsSync("/proc/self/fd");
const maxLinks = 40;
/** How often a part may change between lstat and open before the walk fails. */
const maxRaces = 16;

/** An open directory of the workspace. */
export interface Directory {
  readonly handle: FileHandle;
  /** Its path when it was opened: for messages, and for systems without /proc/self/fd. */
  readonly path: string;
}

/** The target of a path: a name in an open directory. During the walk, the name was not a symbolic link. */
export interface ResolvedPath extends AsyncDisposable {
  readonly directory: Directory;
  /** `.` for the workspace folder itself. */
  readonly name: string;
  /** Path from the workspace folder, with `/`; `.` for the folder itself. */
  readonly relative: string;
  /** Null when it does not exist. */
  readonly stats: Stats | null;
}

/** The path of a name in an open directory, for calls that must not follow a link at its end. */
export function inDirectory(directory: Directory, name: string): string {
  return byDescriptor ? `/proc/self/fd/${directory.handle.fd}/${name}` : join(directory.path, name);
}

/** What a view of a workspace does with each resolved place. */
interface PlaceFilter {
  isDenied?: IsDenied;
  onPlace?: (place: ResolvedPath) => Promise<void>;
}

export class Workspace implements AsyncDisposable {
  /** Unique in a deployment: `main` is the owner's. */
  readonly id: string;
  /** Absolute, without symbolic links. */
  readonly root: string;
  /** The quota; every writer must check it. */
  readonly room: WorkspaceQuota;
  /** Folder of its file locks, outside the workspace. */
  readonly lockFolder: string;
  readonly #directory: Directory;
  readonly #filter: PlaceFilter;

  constructor(
    root: string,
    handle: FileHandle,
    room: QuotaRules | WorkspaceQuota,
    { id, lockFolder }: Pick<Workspace, "id" | "lockFolder">,
    filter: PlaceFilter = {},
  ) {
    this.id = id;
    this.root = root;
    this.lockFolder = lockFolder;
    this.room = room instanceof WorkspaceQuota ? room : new WorkspaceQuota(root, room);
    this.#directory = { handle, path: root };
    this.#filter = filter;
  }

  /** A view of this workspace; `onPlace` is awaited for each resolved place before the caller gets it. Must not be disposed. */
  observed(onPlace: (place: ResolvedPath) => Promise<void>): Workspace {
    return this.#with({ onPlace });
  }

  /** A view of this workspace that denies paths matching permission rule patterns. Must not be disposed. */
  without(patterns: readonly string[]): Workspace {
    return patterns.length === 0 ? this : this.#with({ isDenied: deniedBy(patterns) });
  }

  /** Whether a path (relative to the workspace folder, without links) is denied. */
  isDenied(relative: string): boolean {
    return this.#filter.isDenied?.(relative) === true;
  }

  #with(filter: PlaceFilter): Workspace {
    return new Workspace(this.root, this.#directory.handle, this.room, this, { ...this.#filter, ...filter });
  }

  /**
   * Resolves a path. With `createParents`, missing parent directories are created. The last part may be missing.
   * Throws WorkspaceError. The caller disposes the place.
   */
  async resolve(path: string, options: { createParents?: boolean } = {}): Promise<ResolvedPath> {
    const walk = new Walk(path, this.root, this.#directory, options.createParents ?? false);
    try {
      const place = await walk.toEnd(splitPath(path, this.root));
      if (this.isDenied(place.relative)) {
        throw new WorkspaceError("denied", `A permission rule denies access to "${shown(place.relative)}".`);
      }
      await this.#filter.onPlace?.(place);
      return place;
    } catch (error) {
      await walk.release();
      throw error;
    }
  }

  /** Opens and closes the folder. Rejects when that fails; does not settle while the file system threads are blocked. */
  async check(): Promise<void> {
    await (await open(this.root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)).close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#directory.handle.close();
  }
}

/**
 * Opens the workspace folder, creating it if missing. `state`: the folder of the service's own files for this workspace, the same for
 * all replicas that share it; default: `.<name>-state` next to the workspace. `id`: default: the owner's.
 */
export async function openWorkspace(
  path: string,
  rules: QuotaRules = unlimitedQuota,
  state?: string,
  id: string = mainWorkspaceId,
): Promise<Workspace> {
  await mkdir(path, { recursive: true });
  const root = await realpath(path);
  const lockFolder = join(state ?? stateFolderOf(root), "locks");
  return new Workspace(root, await open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), rules, { id, lockFolder });
}

/** Opens the file at a place for reading. Throws WorkspaceError when it is not a regular file; a pipe does not block it. */
export async function openFile(place: ResolvedPath): Promise<{ handle: FileHandle; stats: Stats }> {
  requireFile(place, place.stats);
  const handle = await openLast(place, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const stats = await handle.stat();
    requireFile(place, stats);
    return { handle, stats };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Opens the directory at a place. Throws WorkspaceError when it is not a directory. */
export async function openDirectory(place: ResolvedPath): Promise<Directory> {
  if (place.stats === null) throw notFound(place.relative);
  if (!place.stats.isDirectory()) {
    throw new WorkspaceError("not_a_directory", `"${shown(place.relative)}" is not a directory.`);
  }
  const handle = await openLast(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  return { handle, path: join(place.directory.path, place.name) };
}

function notFound(relative: string): WorkspaceError {
  return new WorkspaceError("not_found", `"${shown(relative)}" does not exist.`);
}

/** Throws unless it is a regular file. */
function requireFile(place: ResolvedPath, stats: Stats | null): void {
  const name = shown(place.relative);
  if (stats === null) throw notFound(place.relative);
  if (stats.isDirectory()) throw new WorkspaceError("is_a_directory", `"${name}" is a directory; list it with ls.`);
  if (!stats.isFile()) throw new WorkspaceError("not_a_file", `"${name}" is ${kindOf(stats)}, not a file.`);
}

export function kindOf(stats: Stats): string {
  if (stats.isFile()) return "a file";
  if (stats.isDirectory()) return "a directory";
  if (stats.isSymbolicLink()) return "a symbolic link";
  if (stats.isFIFO()) return "a named pipe";
  if (stats.isSocket()) return "a socket";
  return "a device";
}

async function openLast(place: ResolvedPath, flags: number): Promise<FileHandle> {
  try {
    return await open(inDirectory(place.directory, place.name), flags);
  } catch (error) {
    const code = errnoOf(error);
    if (code === "ELOOP" || code === "ENOTDIR" || code === "ENOENT") throw changed(place.relative);
    throw error;
  }
}

function changed(relative: string): WorkspaceError {
  return new WorkspaceError("changed", `"${shown(relative)}" was changed while it was being opened; try again.`);
}

/** One path walk: its open directories, their names, and its budgets for links and races. */
class Walk {
  readonly #asked: string;
  readonly #root: string;
  readonly #createParents: boolean;
  readonly #open: Directory[];
  readonly #names: string[] = [];
  #links = 0;
  #races = 0;

  constructor(asked: string, root: string, directory: Directory, createParents: boolean) {
    this.#asked = asked;
    this.#root = root;
    this.#open = [directory];
    this.#createParents = createParents;
  }

  async toEnd(parts: string[]): Promise<ResolvedPath> {
    const ahead = parts.toReversed();
    for (;;) {
      const name = ahead.pop();
      if (name === undefined) return this.#here();
      if (name === "..") {
        await this.#back();
        continue;
      }
      const stats = await statsOf(this.#top, name);
      if (stats === null) {
        if (ahead.length === 0) return this.#place(name, null);
        if (!this.#createParents || ahead.includes("..")) throw notFound([...this.#names, name].join("/"));
        await makeDirectory(this.#top, name);
        ahead.push(name);
        this.#race();
      } else if (stats.isSymbolicLink()) {
        ahead.push(...(await this.#linkTarget(name)));
      } else if (ahead.length === 0) {
        return this.#place(name, stats);
      } else if (stats.isDirectory()) {
        if (!(await this.#enter(name))) ahead.push(name);
      } else {
        throw new WorkspaceError(
          "not_a_directory",
          `"${shown([...this.#names, name].join("/"))}" is ${kindOf(stats)}, not a directory.`,
        );
      }
    }
  }

  /** Closes all directories of the walk except the root. */
  async release(): Promise<void> {
    await Promise.all(this.#open.splice(1).map((directory) => directory.handle.close()));
  }

  get #top(): Directory {
    const top = this.#open.at(-1);
    if (top === undefined) throw outside(this.#asked);
    return top;
  }

  #place(name: string, stats: Stats | null): ResolvedPath {
    return {
      directory: this.#top,
      name,
      relative: [...this.#names, name].join("/"),
      stats,
      [Symbol.asyncDispose]: () => this.release(),
    };
  }

  /** The place of the current directory of the walk. */
  async #here(): Promise<ResolvedPath> {
    const stats = await this.#top.handle.stat();
    const relative = this.#names.length === 0 ? "." : this.#names.join("/");
    return { directory: this.#top, name: ".", relative, stats, [Symbol.asyncDispose]: () => this.release() };
  }

  async #back(): Promise<void> {
    if (this.#open.length === 1) throw outside(this.#asked);
    this.#names.pop();
    await this.#open.pop()?.handle.close();
  }

  /** False when the name is no longer a directory and must be examined again. */
  async #enter(name: string): Promise<boolean> {
    const top = this.#top;
    try {
      const handle = await open(inDirectory(top, name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      this.#open.push({ handle, path: join(top.path, name) });
      this.#names.push(name);
      return true;
    } catch (error) {
      const code = errnoOf(error);
      if (code !== "ELOOP" && code !== "ENOTDIR" && code !== "ENOENT") throw error;
      this.#race();
      return false;
    }
  }

  /** The parts to walk in place of a link, last one first. An absolute target starts at the root. */
  async #linkTarget(name: string): Promise<string[]> {
    this.#links += 1;
    if (this.#links > maxLinks) {
      throw new WorkspaceError("too_many_links", `"${shown(this.#asked)}" contains too many symbolic links.`);
    }
    let target: string;
    try {
      target = await readlink(inDirectory(this.#top, name));
    } catch (error) {
      const code = errnoOf(error);
      if (code !== "EINVAL" && code !== "ENOENT") throw error;
      this.#race();
      return [name];
    }
    const parts = splitPath(target, this.#root);
    if (target.startsWith("/")) {
      await this.release();
      this.#names.length = 0;
    }
    return parts.toReversed();
  }

  #race(): void {
    this.#races += 1;
    if (this.#races > maxRaces + (this.#createParents ? 128 : 0)) throw changed(this.#asked);
  }
}

async function statsOf(directory: Directory, name: string): Promise<Stats | null> {
  try {
    return await lstat(inDirectory(directory, name));
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  }
}

async function makeDirectory(directory: Directory, name: string): Promise<void> {
  try {
    await mkdir(inDirectory(directory, name));
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
  }
}
