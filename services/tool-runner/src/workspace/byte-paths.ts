// Paths as bytes: a name need not be valid UTF-8, and a path may be longer than one system call accepts.
import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { byDescriptor } from "./directory-handles.ts";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
/** The longest path of a system call on Linux. */
const acceptedBytes = 4_095;
/** Longer paths are not shortened, so that a deep tree does not cost a number of calls that grows with the square of its depth. */
const maxBytes = 32 * 1024;
const separator = Buffer.from("/");

export function joinBytes(folder: Buffer, name: Buffer): Buffer {
  return Buffer.concat([folder, separator, name]);
}

/**
 * Calls `use` with a path of the same entry that a system call accepts: the first part of a long one is replaced by an open directory.
 * A path of more than 32 KiB is used as it is, and so fails with ENAMETOOLONG.
 */
export async function withinReach<T>(path: Buffer, use: (path: Buffer) => Promise<T>): Promise<T> {
  if (!byDescriptor || path.length > maxBytes) return use(path);
  let reached: FileHandle | undefined;
  let short = path;
  try {
    while (short.length > acceptedBytes) {
      const end = short.lastIndexOf(separator, acceptedBytes);
      const next = await openFolder(short.subarray(0, end));
      await reached?.close();
      reached = next;
      short = Buffer.concat([bytesOf(reached), short.subarray(end)]);
    }
    return await use(short);
  } finally {
    await reached?.close();
  }
}

/** An open directory, and the path for names in it. */
export interface OpenFolder extends AsyncDisposable {
  readonly path: Buffer;
}

/** Opens a directory at a path of at most 32 KiB. */
export async function openAt(path: Buffer): Promise<OpenFolder> {
  const handle = await withinReach(path, openFolder);
  return { path: byDescriptor ? bytesOf(handle) : path, [Symbol.asyncDispose]: () => handle.close() };
}

function openFolder(path: Buffer): Promise<FileHandle> {
  return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

function bytesOf(handle: FileHandle): Buffer {
  return Buffer.from(`/proc/self/fd/${handle.fd}`);
}
