// The further folders that sessions may work in: checked at the start, because their tools must reach nothing else of the service.
import { realpathSync, statSync } from "node:fs";
import { relative, sep } from "node:path";
import { ConfigError } from "@parley/chassis";
import { folderWorkspaceId } from "@parley/contracts";

/**
 * The folders of `[workspace.folders]` by the id of their workspace, without links. `closed`: files and folders of the service that tools
 * must not reach. Throws ConfigError for a missing folder, and for one that overlaps another workspace: taint and locks of a file
 * belong to one workspace.
 */
export function namedFolders(
  settings: Readonly<Record<string, string>>,
  workspace: string,
  closed: readonly string[],
): Map<string, string> {
  const named = checkedFolders("workspace.folders", settings, new Map([["the workspace", workspace]]), closed);
  return new Map([...named].map(([name, path]) => [folderWorkspaceId(name), path]));
}

/**
 * The folders of `[workspace.mounts]` by name, without links. Throws ConfigError for a missing folder, and for one that overlaps a
 * workspace, where taint would be lost, or what no tool may reach.
 */
export function mountedFolders(
  settings: Readonly<Record<string, string>>,
  workspaces: readonly string[],
  closed: readonly string[],
): Map<string, string> {
  const others = new Map(workspaces.map((path) => [`the workspace ${path}`, path]));
  return checkedFolders("workspace.mounts", settings, others, closed);
}

function checkedFolders(
  table: string,
  settings: Readonly<Record<string, string>>,
  reserved: ReadonlyMap<string, string>,
  closed: readonly string[],
): Map<string, string> {
  const others = new Map([...reserved].map(([name, path]) => [name, realOf(path)]));
  const folders = new Map<string, string>();
  for (const [name, given] of Object.entries(settings)) {
    const setting = `${table}.${name}`;
    if (statSync(given, { throwIfNoEntry: false })?.isDirectory() !== true) {
      throw new ConfigError(`${setting}: ${given} is not a folder of this machine`);
    }
    const path = realpathSync(given);
    const reached = closed.map(realOf).find((each) => isInside(each, path) || isInside(path, each));
    if (reached !== undefined)
      throw new ConfigError(`${setting}: ${path} overlaps ${reached}, which no tool may reach`);
    for (const [other, at] of others) {
      if (isInside(path, at) || isInside(at, path)) {
        throw new ConfigError(`${setting}: ${path} overlaps ${other} (${at})`);
      }
    }
    others.set(setting, path);
    folders.set(name, path);
  }
  return folders;
}

/** The path without links; itself if nothing is there yet. */
function realOf(path: string): string {
  return statSync(path, { throwIfNoEntry: false }) === undefined ? path : realpathSync(path);
}

/** Whether a path is the folder or below it. */
function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`);
}
