// Decides what a push or a pull has to do. Pure: it compares a folder, what it was made from, and what the store has now.

import type { Bases, LocalDocument } from "./folder.ts";

export interface Remote {
  path: string;
  version: number;
  sha256: string;
}

export type Step =
  /** `expectedVersion` 0: it is new there. */
  | { act: "write"; path: string; expectedVersion: number }
  | { act: "remove"; path: string; expectedVersion: number }
  /** Both sides changed, or nobody knows which is newer. */
  | { act: "conflict"; path: string; reason: string };

interface Sides {
  local: ReadonlyMap<string, LocalDocument>;
  bases: Bases;
  remote: ReadonlyMap<string, Remote>;
}

/** What has to change in the store so that it is as the folder. A file that is gone removes its document only with `remove`. */
export function planPush(sides: Sides, { remove }: { remove: boolean }): Step[] {
  return pathsOf(sides).flatMap((path): Step[] => {
    const local = sides.local.get(path);
    const base = sides.bases[path];
    const remote = sides.remote.get(path);
    if (local?.sha256 === remote?.sha256) return [];
    if (local === undefined) {
      if (!remove || remote === undefined || base === undefined) return [];
      if (remote.version !== base.version)
        return [
          conflict(path, `is at version ${remote.version} there; the file that is gone was version ${base.version}`),
        ];
      return [{ act: "remove", path, expectedVersion: remote.version }];
    }
    if (remote === undefined) {
      if (base !== undefined && base.sha256 === local.sha256) return [conflict(path, "was removed there")];
      return [{ act: "write", path, expectedVersion: 0 }];
    }
    if (base?.version === remote.version) return [{ act: "write", path, expectedVersion: remote.version }];
    // Unchanged here, newer there: a pull brings it.
    if (base?.sha256 === local.sha256)
      return [
        conflict(path, `is newer there: version ${remote.version}; your file is version ${base.version}, unchanged`),
      ];
    const yours = base === undefined ? "was never pulled" : `is made from version ${base.version}`;
    return [conflict(path, `is at version ${remote.version} there; your file ${yours}`)];
  });
}

/** What has to change in the folder so that it is as the store. */
export function planPull(sides: Sides): Step[] {
  return pathsOf(sides).flatMap((path): Step[] => {
    const local = sides.local.get(path);
    const base = sides.bases[path];
    const remote = sides.remote.get(path);
    if (local?.sha256 === remote?.sha256) return [];
    const isOurs = local !== undefined && local.sha256 !== base?.sha256;
    if (remote === undefined) {
      // A file that was never there is a document to be.
      if (base === undefined) return [];
      return isOurs
        ? [conflict(path, "was removed there, and changed here")]
        : [{ act: "remove", path, expectedVersion: base.version }];
    }
    // Changed here only: a push brings it there.
    if (isOurs && base?.version === remote.version) return [];
    if (isOurs) return [conflict(path, `is at version ${remote.version} there, and your file has changes of its own`)];
    return [{ act: "write", path, expectedVersion: remote.version }];
  });
}

function conflict(path: string, reason: string): Step {
  return { act: "conflict", path, reason };
}

function pathsOf({ local, bases, remote }: Sides): string[] {
  return [...new Set([...local.keys(), ...Object.keys(bases), ...remote.keys()])].sort();
}
