// Paths as the model writes them, and as parts. Pure: it knows names, not the disk.
import { basename, dirname, join } from "node:path";
import { WorkspaceError } from "./errors.ts";

/** Where a sandboxed command finds the workspace; paths that begin with it are the workspace's everywhere. */
export const sandboxRoot = "/workspace";

/** Where the service keeps its own files for a workspace unless the deployment names a folder. */
export function stateFolderOf(workspace: string): string {
  return join(dirname(workspace), `.${basename(workspace)}-state`);
}

const maxPathCharacters = 4096;
/** Deeper than any tree that people make; each part costs an open directory. */
const maxParts = 128;

/** The parts of a path below the root; `..` stays in and is resolved against the disk. Throws WorkspaceError. */
export function splitPath(path: string, root: string): string[] {
  if (path.includes("\0")) throw new WorkspaceError("invalid_path", "The path contains a NUL byte.");
  if (path.length > maxPathCharacters) throw new WorkspaceError("invalid_path", "The path is too long.");
  const below = path.startsWith("/") ? belowRoot(path, root) : path;
  if (below === undefined) throw outside(path);
  const parts = below.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.length > maxParts) throw new WorkspaceError("invalid_path", "The path has too many parts.");
  return parts;
}

export function outside(path: string): WorkspaceError {
  return new WorkspaceError(
    "outside",
    `"${shown(path)}" is outside the workspace. Paths are relative to the workspace folder, which cannot be left.`,
  );
}

/** A path in a message: short, and on one line. */
export function shown(path: string): string {
  const line = path.toWellFormed().replaceAll(/\p{Cc}/gu, "?");
  return line.length <= 200 ? line : `${line.slice(0, 100)}…${line.slice(-90)}`;
}

function belowRoot(path: string, root: string): string | undefined {
  for (const base of [root, sandboxRoot]) {
    if (path === base) return "";
    if (path.startsWith(`${base}/`)) return path.slice(base.length + 1);
  }
  return undefined;
}
