// Which paths of the workspace are documents. Pure: a path is judged by its names, whatever stands on the disk.
import { documentFolders, rootDocuments } from "@parley/contracts";
import { splitPath } from "../workspace/paths.ts";

const folders: ReadonlySet<string> = new Set(documentFolders);
const files: ReadonlySet<string> = new Set(rootDocuments);

/** Names in the workspace's root that are documents or folders of documents: what the disk has there by these names is hidden. */
export const documentNames: ReadonlySet<string> = new Set([...rootDocuments, ...documentFolders]);

/**
 * The path from the workspace's root, `.` and `..` resolved; "" for the root itself. Undefined where it leads out of it. Throws
 * WorkspaceError for what is no path of the workspace.
 */
export function normalPath(path: string, root: string): string | undefined {
  const parts: string[] = [];
  for (const part of splitPath(path, root)) {
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) return undefined;
  }
  return parts.join("/");
}

/** Whether documents, and not the disk, answer for a path: a document's, a folder's of documents, or one below such a folder. */
export function isDocumentPath(path: string): boolean {
  const [first = "", ...rest] = path.split("/");
  return folders.has(first) || (rest.length === 0 && files.has(first));
}

/** `memory` and `skills`: there whether or not anything is in them. */
export function isDocumentFolder(path: string): boolean {
  return folders.has(path);
}

export interface Entry {
  name: string;
  isFolder: boolean;
  /** Of a document. */
  bytes: number;
}

/** What stands directly in a folder ("" = the root), sorted by name. */
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

/** The path from a folder ("" = the root); undefined for what is not below it. */
export function pathInside(path: string, folder: string): string | undefined {
  if (folder === "") return path;
  return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : undefined;
}
