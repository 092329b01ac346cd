// Normalizes the path of a call for rules. Pure: works on names, without disk access. The tool-runner confines calls to the workspace.

export interface ParsedPath {
  /** The path as written by the model. */
  written: string;
  /** The segments relative to the workspace; null if the path is outside of it. */
  names: readonly string[] | null;
  /** Whether it contains `..`, which may resolve differently after a symbolic link. */
  hasParent: boolean;
}

/** The path of the workspace inside the sandbox. */
const sandboxRoot = "/workspace";

/** `roots`: absolute paths of the workspace, in addition to its path in the sandbox. */
export function parsePath(written: string, roots: readonly string[] = []): ParsedPath {
  const below = written.startsWith("/") ? belowRoot(written, [sandboxRoot, ...roots]) : written;
  const parts = (below ?? "").split("/").filter((part) => part !== "" && part !== ".");
  const hasParent = parts.includes("..");
  const names = below === null || below.includes("\0") ? null : resolve(parts);
  return { written, names, hasParent };
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

/** The files that an `apply_patch` text changes. */
export function patchPaths(patch: string): string[] {
  return [...patch.matchAll(/^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$/gm)].map((match) =>
    (match[1] ?? "").trim(),
  );
}
