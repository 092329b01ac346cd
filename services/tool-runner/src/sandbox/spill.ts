// Stores a long output in a workspace file, up to a limit, so that the model can read it. Removes old files.
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { lstat, opendir, unlink } from "node:fs/promises";
import { inDirectory, type Directory } from "../workspace/directory-handles.ts";
import type { Workspace } from "../workspace/workspace.ts";

const outputFolder = ".parley/output";
/** Names of earlier outputs, which a turn and the number of the call in it make up. */
const outputName = /^[\w-]*-\d+\.txt$/;
const keptFiles = 50;
/** Directory entries examined: a command may fill the folder, and every entry costs all calls time. */
const maxNames = 500;
const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW } = constants;

/** A file that stores what fits and drops the rest. */
export interface Spill {
  readonly path: string;
  readonly writtenBytes: number;
  write(chunk: Buffer): void;
  close(): void;
}

/** Passes on file system errors. A spill is a convenience: its failure must not fail the command. */
export async function openSpill(workspace: Workspace, callName: string, maxBytes: number): Promise<Spill> {
  const path = `${outputFolder}/${callName}.txt`;
  await using place = await workspace.resolve(path, { createParents: true });
  // A link in the folder's place would make the clean-up remove files of the user.
  if (place.relative !== path) throw new Error(`${path} leads elsewhere`);
  await removeOld(place.directory);
  const file = inDirectory(place.directory, place.name);
  // Never write to an existing entry: it may be an earlier file, a pipe that another command reads, or a hard link.
  if (place.stats !== null) await unlink(file);
  const fd = openSync(file, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0o644);
  let written = 0;
  let open = true;
  return {
    path: place.relative,
    get writtenBytes() {
      return written;
    },
    write: (chunk) => {
      const piece = chunk.subarray(0, maxBytes - written);
      if (!open || piece.length === 0) return;
      try {
        written += writeSync(fd, piece);
      } catch {
        // The disk is full: keep what was written, drop the rest.
        open = false;
        closeQuietly(fd);
      }
    },
    close: () => {
      if (open) closeQuietly(fd);
      open = false;
    },
  };
}

/** Some file systems report a failed write only here. The descriptor is closed nevertheless. */
function closeQuietly(fd: number): void {
  try {
    closeSync(fd);
  } catch {
    // Keep what was written.
  }
}

async function removeOld(directory: Directory): Promise<void> {
  const aged: { name: string; at: number }[] = [];
  let examined = 0;
  for await (const { name } of await opendir(inDirectory(directory, "."))) {
    examined += 1;
    if (examined > maxNames) break;
    if (!outputName.test(name)) continue;
    const stats = await lstat(inDirectory(directory, name)).catch(() => undefined);
    if (stats !== undefined) aged.push({ name, at: stats.mtimeMs });
  }
  aged.sort((a, b) => b.at - a.at);
  for (const { name } of aged.slice(keptFiles - 1)) await unlink(inDirectory(directory, name)).catch(() => undefined);
}
