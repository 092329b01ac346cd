// Replaces a whole file atomically: a reader sees the old or the new content, never a part.
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { open, rename, unlink } from "node:fs/promises";
import { WorkspaceError } from "./errors.ts";
import { displayPath } from "./paths.ts";
import { inDirectory, kindOf, type ResolvedPath } from "./directory-handles.ts";
import type { Workspace } from "./workspace.ts";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
const permissionBits = 0o7777;

/**
 * Replaces or creates the file at a place. An existing file keeps its mode; a new one gets `newMode` if given. The mode is set before
 * the rename: by name it could apply to another file that was put there meanwhile. Throws WorkspaceError.
 */
export async function replaceFile(
  place: ResolvedPath,
  content: string | Uint8Array,
  newMode: number | null = null,
): Promise<void> {
  const { stats } = place;
  if (stats !== null && !stats.isFile()) {
    throw new WorkspaceError(
      stats.isDirectory() ? "is_a_directory" : "not_a_file",
      `"${displayPath(place.relative)}" is ${kindOf(stats)}, not a file; it was not changed.`,
    );
  }
  // Created in the directory that is already open, so the rename stays in it even if the path changes meanwhile.
  const temporary = inDirectory(place.directory, `.parley-${randomBytes(9).toString("hex")}.tmp`);
  const handle = await open(temporary, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o666);
  try {
    try {
      await handle.writeFile(content);
      if (stats !== null) {
        // Fails when the runner may not change owners; the content matters more than the owner.
        await handle.chown(stats.uid, stats.gid).catch(() => undefined);
        await handle.chmod(stats.mode & permissionBits);
      } else if (newMode !== null) {
        await handle.chmod(newMode & permissionBits);
      }
    } finally {
      await handle.close();
    }
    await rename(temporary, inDirectory(place.directory, place.name));
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}

/** Reserves quota for writing `bytes` at a path, before anything is created on the way there. Throws WorkspaceError. */
export async function reserveSpace(workspace: Workspace, path: string, bytes: number): Promise<void> {
  await workspace.quota.reserve(bytes, await sizeAt(workspace, path));
}

/** Size of the file at a path; 0 when it does not exist. */
async function sizeAt(workspace: Workspace, path: string): Promise<number> {
  try {
    await using place = await workspace.resolve(path);
    return place.stats?.isFile() === true ? place.stats.size : 0;
  } catch (error) {
    if (error instanceof WorkspaceError && error.code === "not_found") return 0;
    throw error;
  }
}
