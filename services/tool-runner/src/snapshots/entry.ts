// A directory entry of the workspace. Unlike a place, it may be a symbolic link, which is then not followed.
import type { Stats } from "node:fs";
import { splitPath } from "../workspace/paths.ts";
import { openDirectory, statsOf, type Directory } from "../workspace/directory-handles.ts";
import type { Workspace } from "../workspace/workspace.ts";

export interface Entry extends AsyncDisposable {
  readonly directory: Directory;
  /** `.` for the workspace folder itself. */
  readonly name: string;
  /** Path from the workspace folder, without links on the way; `.` for the folder itself. */
  readonly relative: string;
  /** Stats of the entry itself; null when it does not exist. */
  readonly stats: Stats | null;
}

/** Opens the parent directory of a path and reads the entry. Throws WorkspaceError. The caller disposes it. */
export async function openEntry(workspace: Workspace, path: string): Promise<Entry> {
  const parts = splitPath(path, workspace.root);
  const name = parts.pop();
  if (name === undefined || name === "..") return workspace.resolve(path);
  await using parent = await workspace.resolve(parts.length === 0 ? "." : parts.join("/"));
  const directory = await openDirectory(parent);
  const close = () => directory[Symbol.asyncDispose]();
  try {
    const relative = parent.relative === "." ? name : `${parent.relative}/${name}`;
    return { directory, name, relative, stats: await statsOf(directory, name), [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}
