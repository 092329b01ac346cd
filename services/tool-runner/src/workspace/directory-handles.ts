// Open directories of the workspace, and the files and directories that are opened in them. Nothing here follows a link.
//
// Node has no openat(2). On Linux `/proc/self/fd/<fd>/<name>` is equivalent: `name` in exactly the open directory.
// Elsewhere names are used, so a directory that is swapped between two parts of a path is not noticed.
import { constants, existsSync, type Stats } from "node:fs";
import { lstat, open, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf, WorkspaceError } from "./errors.ts";
import { displayPath } from "./paths.ts";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
/** Whether an open directory can be part of a path. */
export const byDescriptor = existsSync("/proc/self/fd");

/** An open directory of the workspace. */
export interface Directory extends AsyncDisposable {
  readonly handle: FileHandle;
  /** Its path when it was opened: for messages, and for systems without /proc/self/fd. */
  readonly path: string;
}

/** An open regular file. */
interface OpenFile extends AsyncDisposable {
  readonly handle: FileHandle;
  readonly stats: Stats;
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

export function openedDirectory(handle: FileHandle, path: string): Directory {
  return { handle, path, [Symbol.asyncDispose]: () => handle.close() };
}

/** Opens the file at a resolved path for reading. Throws WorkspaceError when it is not a regular file; a pipe does not block it. */
export async function openFile(target: ResolvedPath): Promise<OpenFile> {
  requireFile(target, target.stats);
  const handle = await openLast(target, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const stats = await handle.stat();
    requireFile(target, stats);
    return { handle, stats, [Symbol.asyncDispose]: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Opens the directory at a resolved path. Throws WorkspaceError when it is not a directory. */
export async function openDirectory(target: ResolvedPath): Promise<Directory> {
  if (target.stats === null) throw notFoundError(target.relative);
  if (!target.stats.isDirectory()) {
    throw new WorkspaceError("not_a_directory", `"${displayPath(target.relative)}" is not a directory.`);
  }
  const handle = await openLast(target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  return openedDirectory(handle, join(target.directory.path, target.name));
}

export function notFoundError(relative: string): WorkspaceError {
  return new WorkspaceError("not_found", `"${displayPath(relative)}" does not exist.`);
}

/** Throws unless it is a regular file. */
function requireFile(target: ResolvedPath, stats: Stats | null): void {
  const name = displayPath(target.relative);
  if (stats === null) throw notFoundError(target.relative);
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

async function openLast(target: ResolvedPath, flags: number): Promise<FileHandle> {
  try {
    return await open(inDirectory(target.directory, target.name), flags);
  } catch (error) {
    const code = errnoOf(error);
    if (code === "ELOOP" || code === "ENOTDIR" || code === "ENOENT") throw changedError(target.relative);
    throw error;
  }
}

export function changedError(relative: string): WorkspaceError {
  return new WorkspaceError("changed", `"${displayPath(relative)}" was changed while it was being opened; try again.`);
}

/** The stats of a name itself; null when it does not exist. */
export async function statsOf(directory: Directory, name: string): Promise<Stats | null> {
  try {
    return await lstat(inDirectory(directory, name));
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  }
}
