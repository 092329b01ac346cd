// Where a path of a call leads, as rules see it. Pure: it knows names, not the disk, and the tool-runner keeps calls inside
// the workspace.

export interface PathReading {
  /** As the model wrote it. */
  written: string;
  /** The names from the workspace down; null: it leads out of it. */
  names: readonly string[] | null;
  /** It has `..` in it, which a symbolic link may send elsewhere than the names say. */
  climbs: boolean;
}

/** Where a sandboxed command finds the workspace. */
const sandboxRoot = "/workspace";

/** `roots`: absolute folders that mean the workspace, besides the sandbox's own name for it. */
export function readPath(written: string, roots: readonly string[] = []): PathReading {
  const below = written.startsWith("/") ? belowRoot(written, [sandboxRoot, ...roots]) : written;
  const parts = (below ?? "").split("/").filter((part) => part !== "" && part !== ".");
  const climbs = parts.includes("..");
  const names = below === null || below.includes("\0") ? null : resolve(parts);
  return { written, names, climbs };
}

function belowRoot(path: string, roots: readonly string[]): string | null {
  for (const root of roots) {
    if (path === root) return "";
    if (path.startsWith(`${root}/`)) return path.slice(root.length + 1);
  }
  return null;
}

function resolve(parts: readonly string[]): string[] | null {
  const names: string[] = [];
  for (const part of parts) {
    if (part !== "..") names.push(part);
    else if (names.pop() === undefined) return null;
  }
  return names;
}

/** The files an `apply_patch` text touches. */
export function patchPaths(patch: string): string[] {
  return [...patch.matchAll(/^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$/gm)].map((match) =>
    (match[1] ?? "").trim(),
  );
}
