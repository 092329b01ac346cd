// Expands the paths of a command line to existing paths: patterns, trees and the targets of copies.
import { readdir } from "node:fs/promises";
import type { CapturedFile } from "@parley/contracts";
import { minimatch } from "minimatch";
import { WorkspaceError } from "../workspace/errors.ts";
import { splitPath } from "../workspace/paths.ts";
import { inDirectory, openDirectory } from "../workspace/directory-handles.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { openEntry } from "./entry.ts";
import type { Change } from "../text/predict.ts";
import type { NamedPath } from "../text/shell-words.ts";

/** Paths captured per command. A larger tree is untracked as a whole, so that it does not delay the command. */
const maxPaths = 1_000;

/** Words of a shell pattern: braces are expanded before, names that start with a dot need a pattern that does. */
const nameOnly = { nobrace: true, noext: true, nonegate: true, nocomment: true };

export interface Expanded {
  paths: string[];
  untracked: CapturedFile[];
}

export async function expandChanges(workspace: Workspace, changes: readonly Change[]): Promise<Expanded> {
  const paths = new Set<string>();
  const untracked: CapturedFile[] = [];
  const addTree = async (root: string, as: string) => {
    paths.add(as);
    const below: string[] = [];
    if (await listBelow(workspace, root, "", below)) for (const each of below) paths.add(`${as}/${each}`);
    else untracked.push({ kind: "untracked", path: as, reason: `it contains more than ${maxPaths} files` });
  };
  for (const change of changes) {
    if (paths.size > maxPaths) break;
    if (change.kind === "copy") {
      const [to] = await matches(workspace, change.to);
      if (to === undefined) continue;
      paths.add(to);
      const into = await isDirectory(workspace, to);
      for (const named of change.from) {
        for (const from of await matches(workspace, named)) {
          const parts = partsBelow(workspace, from);
          const name = (parts ?? from.split("/")).at(-1) ?? "";
          const as = into ? `${to}/${name}` : to;
          // What comes from outside is not listed: all of its place is.
          await addTree(parts === null ? as : from, as);
        }
      }
    } else {
      for (const path of await matches(workspace, change.at)) {
        if (change.kind === "tree") await addTree(path, path);
        else paths.add(path);
      }
    }
  }
  return { paths: [...paths], untracked };
}

/** The paths that a named path refers to: itself, or the matches of its pattern. */
async function matches(workspace: Workspace, { path, pattern }: NamedPath): Promise<string[]> {
  if (!pattern) return [path];
  let found = [""];
  for (const part of partsBelow(workspace, path) ?? []) {
    const next: string[] = [];
    for (const above of found) {
      if (!/[*?[]/.test(part)) next.push(above === "" ? part : `${above}/${part}`);
      else {
        for (const name of await namesIn(workspace, above === "" ? "." : above)) {
          if (minimatch(name, part, nameOnly)) {
            next.push(above === "" ? name : `${above}/${name}`);
          }
        }
      }
    }
    found = next.slice(0, maxPaths + 1);
  }
  return found.filter((each) => each !== "");
}

/** Parts of the path below the workspace folder; null for a path outside it. */
function partsBelow(workspace: Workspace, path: string): string[] | null {
  try {
    return splitPath(path, workspace.root);
  } catch (error) {
    if (error instanceof WorkspaceError) return null;
    throw error;
  }
}

/** Collects the names below a directory without following links; false when there are too many. A file has none. */
async function listBelow(workspace: Workspace, root: string, relative: string, found: string[]): Promise<boolean> {
  for (const name of await namesIn(workspace, relative === "" ? root : `${root}/${relative}`)) {
    if (found.length >= maxPaths) return false;
    const path = relative === "" ? name : `${relative}/${name}`;
    found.push(path);
    if (!(await listBelow(workspace, root, path, found))) return false;
  }
  return true;
}

/** Names in a directory; empty when it is no directory, outside the workspace or unreadable. */
async function namesIn(workspace: Workspace, path: string): Promise<string[]> {
  try {
    await using entry = await openEntry(workspace, path);
    if (entry.stats?.isDirectory() !== true) return [];
    await using directory = await openDirectory(entry);
    return (await readdir(inDirectory(directory, "."))).sort();
  } catch {
    return [];
  }
}

async function isDirectory(workspace: Workspace, path: string): Promise<boolean> {
  try {
    await using place = await workspace.resolve(path);
    return place.stats?.isDirectory() ?? false;
  } catch {
    return false;
  }
}
