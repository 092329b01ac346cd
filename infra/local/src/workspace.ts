// The workspace of a local cluster: a folder in the home, or one that PARLEY_WORKSPACE names, such as a project. The tools read and
// change it, so it must not contain the cluster's own files.
import { createHash } from "node:crypto";
import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";

import { LocalError } from "./errors.ts";

/** Folders of the tool-runners, absolute. */
export interface WorkspaceFolders {
  readonly workspace: string;
  /** Locks, and the workspaces of other people. */
  readonly state: string;
  /** Earlier contents of files; those of one workspace only, because a rewind restores paths relative to it. */
  readonly checkpoints: string;
}

/** The folders for a workspace; undefined or empty: `workspace` of the data folder. `home`: the data folder. */
export function workspaceFolders(home: string, named?: string): WorkspaceFolders {
  const own = join(home, "workspace");
  const workspace = named ? existingPath(named) : own;
  const of = workspace === own ? "" : `-${createHash("sha256").update(workspace).digest("hex").slice(0, 12)}`;
  return {
    workspace,
    state: join(home, ".workspace-state"),
    checkpoints: join(home, `.workspace-checkpoints${of}`),
  };
}

/** The path without links, or the path itself if nothing is there. */
function existingPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

/**
 * The real path of the folder that PARLEY_WORKSPACE names; undefined: none is named. Throws LocalError `bad_option` if it is no
 * existing folder, or if tools would reach the data folder, the settings or the whole account of the user.
 */
export function chosenWorkspace(
  home: string,
  configPath: string | null,
  { PARLEY_WORKSPACE: named = "", HOME: account = "" }: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (named === "") return undefined;
  const path = realFolder(resolve(named));
  const real = realpathSync(home);
  if (path === join(real, "workspace")) return undefined;
  if (isInside(real, path)) throw refused(path, `it contains the data folder ${real}`);
  if (isInside(path, real)) throw refused(path, `it is in the data folder ${real}`);
  if (configPath !== null && isInside(realpathSync(configPath), path)) {
    throw refused(path, `it contains the settings ${configPath}`);
  }
  // Its files define profiles, and so the tools that sub-agents have.
  const profiles = configPath === null ? null : existingPath(join(dirname(configPath), "agents"));
  if (profiles !== null && (isInside(path, profiles) || isInside(profiles, path))) {
    throw refused(path, `tools would change the profiles in ${profiles}`);
  }
  if (account !== "" && isInside(resolve(account), path)) throw refused(path, "it contains your whole home folder");
  return path;
}

function realFolder(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return realpathSync(path);
  throw new LocalError("bad_option", `PARLEY_WORKSPACE: ${path} is not a folder.`, { fix: "Create it first." });
}

function refused(path: string, reason: string): LocalError {
  return new LocalError("bad_option", `PARLEY_WORKSPACE: ${path} cannot be the workspace: ${reason}.`, {
    fix: "Name a project folder, or move the data folder or the settings with PARLEY_HOME or PARLEY_CONFIG.",
  });
}

/** Whether a path is the folder or below it. */
function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`);
}
