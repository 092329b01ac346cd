// Keeps a long output in a file of the workspace, up to a limit, so that the model can read on. Old ones are removed.
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { lstat, opendir, unlink } from "node:fs/promises";
import { inDirectory, openDirectory, type Workspace } from "../workspace/workspace.ts";

const outputFolder = ".parley/output";
const keptFiles = 50;
/** Names looked at: a command may fill the folder, and looking at each name takes time from all calls. */
const maxNames = 500;
const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW } = constants;

/** A file that takes what fits and drops the rest. */
export interface Spill {
  readonly path: string;
  readonly writtenBytes: number;
  write(chunk: Buffer): void;
  close(): void;
}

/** Throws what the file system throws; a spill is a convenience, its failure is not the command's. */
export async function openSpill(workspace: Workspace, callName: string, maxBytes: number): Promise<Spill> {
  const path = `${outputFolder}/${callName}.txt`;
  await using place = await workspace.resolve(path, { createParents: true });
  await removeOld(workspace);
  const file = inDirectory(place.directory, place.name);
  // Never what is there already: an earlier run's file, a pipe that another command reads, or a second name of another file.
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
        // A full disk: what was written stays, the rest is dropped.
        open = false;
        closeSync(fd);
      }
    },
    close: () => {
      if (open) closeSync(fd);
      open = false;
    },
  };
}

async function removeOld(workspace: Workspace): Promise<void> {
  await using place = await workspace.resolve(outputFolder);
  const directory = await openDirectory(place);
  try {
    const aged: { name: string; at: number }[] = [];
    for await (const { name } of await opendir(inDirectory(directory, "."))) {
      const stats = await lstat(inDirectory(directory, name)).catch(() => undefined);
      if (stats !== undefined) aged.push({ name, at: stats.mtimeMs });
      if (aged.length >= maxNames) break;
    }
    aged.sort((a, b) => b.at - a.at);
    for (const { name } of aged.slice(keptFiles - 1)) await unlink(inDirectory(directory, name)).catch(() => undefined);
  } finally {
    await directory.handle.close();
  }
}
