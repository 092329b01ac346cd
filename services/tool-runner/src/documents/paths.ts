// Decides which workspace paths are documents. Pure: it judges a path by its names, not by the disk.
import { documentFolders, rootDocuments } from "@parley/contracts";
import { splitPath } from "../workspace/paths.ts";

const folders: ReadonlySet<string> = new Set(documentFolders);
const files: ReadonlySet<string> = new Set(rootDocuments);

/** Names in the workspace root that are documents or document folders; files with these names on disk are hidden. */
export const documentNames: ReadonlySet<string> = new Set([...rootDocuments, ...documentFolders]);

/**
 * The path from the workspace root with `.` and `..` resolved; "" for the root itself. Undefined when it leaves the root. Throws
 * WorkspaceError for an invalid path.
 */
export function normalPath(path: string, root: string): string | undefined {
  const parts: string[] = [];
  for (const part of splitPath(path, root)) {
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) return undefined;
  }
  return parts.join("/");
}

/** Whether a path belongs to documents instead of the disk: a document, a document folder, or a path below one. */
export function isDocumentPath(path: string): boolean {
  const [first = "", ...rest] = path.split("/");
  return folders.has(first) || (rest.length === 0 && files.has(first));
}

/** `memory` and `skills`: they exist even when empty. */
export function isDocumentFolder(path: string): boolean {
  return folders.has(path);
}

export interface Entry {
  name: string;
  isFolder: boolean;
  /** Size of a document; 0 for a folder. */
  bytes: number;
}

/** The entries directly in a folder ("" = the root), sorted by name. */
export function entriesOf(documents: readonly { path: string; bytes: number }[], folder: string): Entry[] {
  const entries = new Map<string, Entry>();
  for (const { path, bytes } of documents) {
    const inside = pathInside(path, folder);
    if (inside === undefined) continue;
    const [name = "", ...rest] = inside.split("/");
    if (rest.length === 0) entries.set(name, { name, isFolder: false, bytes });
    else if (!entries.has(name)) entries.set(name, { name, isFolder: true, bytes: 0 });
  }
  return [...entries.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The path relative to a folder ("" = the root); undefined when it is not below the folder. */
export function pathInside(path: string, folder: string): string | undefined {
  if (folder === "") return path;
  return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : undefined;
}
