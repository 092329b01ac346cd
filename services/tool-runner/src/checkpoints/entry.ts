// A name in the workspace as it is: unlike a place, it may be a symbolic link, which is then meant itself.
import type { Stats } from "node:fs";
import { lstat } from "node:fs/promises";
import { errnoOf } from "../workspace/errors.ts";
import { splitPath } from "../workspace/paths.ts";
import { inDirectory, openDirectory, type Directory, type Workspace } from "../workspace/workspace.ts";

export interface Entry extends AsyncDisposable {
  readonly directory: Directory;
  /** `.` for the workspace folder itself. */
  readonly name: string;
  /** From the workspace folder, no link on the way; `.` for the folder itself. */
  readonly relative: string;
  /** Of the name itself; null when nothing has it. */
  readonly stats: Stats | null;
}

/** Opens the directory that a path ends in and looks at the name. Throws WorkspaceError. The caller disposes it. */
export async function openEntry(workspace: Workspace, path: string): Promise<Entry> {
  const parts = splitPath(path, workspace.root);
  const name = parts.pop();
  if (name === undefined || name === "..") return workspace.resolve(path);
  await using parent = await workspace.resolve(parts.length === 0 ? "." : parts.join("/"));
  const directory = await openDirectory(parent);
  try {
    return {
      directory,
      name,
      relative: parent.relative === "." ? name : `${parent.relative}/${name}`,
      stats: await statsOf(directory, name),
      [Symbol.asyncDispose]: () => directory.handle.close(),
    };
  } catch (error) {
    await directory.handle.close();
    throw error;
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
