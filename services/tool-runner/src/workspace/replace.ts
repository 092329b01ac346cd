// Writes a whole file so that a reader sees the old content or the new one, never a part. It does not know why.
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { open, rename, unlink } from "node:fs/promises";
import { WorkspaceError } from "./errors.ts";
import { shown } from "./paths.ts";
import { inDirectory, kindOf, type Place, type Workspace } from "./workspace.ts";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
const permissionBits = 0o7777;

/**
 * Replaces or creates the file at a place; the mode of an existing file is kept, a new one gets `newMode` where that is given.
 * The mode is set before the file has its name: by name it could reach whatever was put there meanwhile. Throws WorkspaceError.
 */
export async function replaceFile(
  place: Place,
  content: string | Uint8Array,
  newMode: number | null = null,
): Promise<void> {
  const { stats } = place;
  if (stats !== null && !stats.isFile()) {
    throw new WorkspaceError(
      stats.isDirectory() ? "is_a_directory" : "not_a_file",
      `"${shown(place.relative)}" is ${kindOf(stats)}, not a file; it was left as it is.`,
    );
  }
  // Made in the directory that is already open, so the rename stays in it whatever happens to the path meanwhile.
  const temporary = inDirectory(place.directory, `.parley-${randomBytes(9).toString("hex")}.tmp`);
  const handle = await open(temporary, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o666);
  try {
    try {
      await handle.writeFile(content);
      if (stats !== null) {
        // Fails where the runner may not give files away; the content matters more than the owner.
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

/** Asks for the room that `bytes` at a path need, before anything is made on the way there. Throws WorkspaceError. */
export async function makeRoom(workspace: Workspace, path: string, bytes: number): Promise<void> {
  await workspace.room.admit(bytes, await sizeAt(workspace, path));
}

/** Of the file at a path; 0 where there is none. */
async function sizeAt(workspace: Workspace, path: string): Promise<number> {
  try {
    await using place = await workspace.resolve(path);
    return place.stats?.isFile() === true ? place.stats.size : 0;
  } catch (error) {
    if (error instanceof WorkspaceError && error.code === "not_found") return 0;
    throw error;
  }
}
