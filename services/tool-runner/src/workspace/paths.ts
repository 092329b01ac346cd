// Parses paths as the model writes them. Pure: it knows names, not the disk.
import { basename, dirname, join } from "node:path";
import { WorkspaceError } from "./errors.ts";

/** Mount point of the workspace in the sandbox; every tool accepts paths that begin with it. */
export const sandboxRoot = "/workspace";

/** Default folder of the service's own files for a workspace. */
export function stateFolderOf(workspace: string): string {
  return join(dirname(workspace), `.${basename(workspace)}-state`);
}

const maxPathCharacters = 4096;
/** Deeper than realistic trees; each part costs an open directory. */
const maxParts = 128;

/** The parts of a path below the root; `..` is kept and resolved against the disk. Throws WorkspaceError. */
export function splitPath(path: string, root: string): string[] {
  if (path.includes("\0")) throw new WorkspaceError("invalid_path", "The path contains a NUL byte.");
  if (path.length > maxPathCharacters) throw new WorkspaceError("invalid_path", "The path is too long.");
  const below = path.startsWith("/") ? belowRoot(path, root) : path;
  if (below === undefined) throw outsideError(path);
  const parts = below.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.length > maxParts) throw new WorkspaceError("invalid_path", "The path has too many parts.");
  return parts;
}

export function outsideError(path: string): WorkspaceError {
  return new WorkspaceError(
    "outside",
    `"${displayPath(path)}" is outside the workspace. Paths are relative to the workspace folder and cannot leave it.`,
  );
}

/** A path formatted for a message: short, on one line. */
export function displayPath(path: string): string {
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
