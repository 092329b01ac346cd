// Plans a push or a pull. Pure: it compares a folder, its base versions and the store.

import type { Bases, LocalDocument } from "./folder.ts";

export interface Remote {
  path: string;
  version: number;
  sha256: string;
}

export type Step =
  /** `expectedVersion` 0: it is new in the store. */
  | { act: "write"; path: string; expectedVersion: number }
  | { act: "remove"; path: string; expectedVersion: number }
  /** Both sides changed, or it is unknown which is newer. */
  | { act: "conflict"; path: string; reason: string };

interface Sides {
  local: ReadonlyMap<string, LocalDocument>;
  bases: Bases;
  remote: ReadonlyMap<string, Remote>;
}

/** The changes that make the store equal to the folder. A missing file removes its document only with `remove`. */
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
          conflict(path, `is at version ${remote.version} in the store; your removed file was version ${base.version}`),
        ];
      return [{ act: "remove", path, expectedVersion: remote.version }];
    }
    if (remote === undefined) {
      if (base !== undefined && base.sha256 === local.sha256) return [conflict(path, "was removed in the store")];
      return [{ act: "write", path, expectedVersion: 0 }];
    }
    if (base?.version === remote.version) return [{ act: "write", path, expectedVersion: remote.version }];
    // Unchanged here, newer in the store: pull it.
    if (base?.sha256 === local.sha256)
      return [
        conflict(
          path,
          `is newer in the store: version ${remote.version}; your file is the unchanged version ${base.version}`,
        ),
      ];
    const yours = base === undefined ? "was never pulled" : `is based on version ${base.version}`;
    return [conflict(path, `is at version ${remote.version} in the store; your file ${yours}`)];
  });
}

/** The changes that make the folder equal to the store. */
export function planPull(sides: Sides): Step[] {
  return pathsOf(sides).flatMap((path): Step[] => {
    const local = sides.local.get(path);
    const base = sides.bases[path];
    const remote = sides.remote.get(path);
    if (local?.sha256 === remote?.sha256) return [];
    const isOurs = local !== undefined && local.sha256 !== base?.sha256;
    if (remote === undefined) {
      // A file that was never in the store is a new document.
      if (base === undefined) return [];
      return isOurs
        ? [conflict(path, "was removed in the store and changed here")]
        : [{ act: "remove", path, expectedVersion: base.version }];
    }
    // Changed only here: push it.
    if (isOurs && base?.version === remote.version) return [];
    if (isOurs)
      return [conflict(path, `is at version ${remote.version} in the store, and your file has local changes`)];
    return [{ act: "write", path, expectedVersion: remote.version }];
  });
}

function conflict(path: string, reason: string): Step {
  return { act: "conflict", path, reason };
}

function pathsOf({ local, bases, remote }: Sides): string[] {
  return [...new Set([...local.keys(), ...Object.keys(bases), ...remote.keys()])].sort();
}
