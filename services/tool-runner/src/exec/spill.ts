// Keeps a long output in a file of the workspace, up to a limit, so that the model can read on. Old ones are removed.
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { lstat, readdir, unlink } from "node:fs/promises";
import { inDirectory, openDirectory, type Workspace } from "../workspace/workspace.ts";

const outputFolder = ".parley/output";
const keptFiles = 50;
const { O_CREAT, O_TRUNC, O_WRONLY, O_NOFOLLOW, O_NONBLOCK } = constants;

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
  const fd = openSync(
    inDirectory(place.directory, place.name),
    O_CREAT | O_TRUNC | O_WRONLY | O_NOFOLLOW | O_NONBLOCK,
    0o644,
  );
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
    const names = await readdir(inDirectory(directory, "."));
    if (names.length < keptFiles) return;
    const aged = await Promise.all(
      names.map(async (name) => ({ name, at: (await lstat(inDirectory(directory, name))).mtimeMs })),
    );
    aged.sort((a, b) => b.at - a.at);
    for (const { name } of aged.slice(keptFiles - 1)) await unlink(inDirectory(directory, name)).catch(() => undefined);
  } finally {
    await directory.handle.close();
  }
}
