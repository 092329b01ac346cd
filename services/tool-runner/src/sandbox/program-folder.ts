// The working directory of programs outside the sandbox: empty and read-only, so that nobody can place files there that the
// programs would load.
import { ConfigError } from "@parley/chassis";
import { errorMessage } from "@parley/contracts";
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { access, lstat, mkdir, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "../workspace/errors.ts";

const name = "program-cwd";

/** Default environment of programs outside the sandbox: Python does not load modules from its working directory. */
export const safeVariables: Readonly<Record<string, string>> = { PYTHONSAFEPATH: "1", PYTHONNOUSERSITE: "1" };

export function programFolderOf(stateFolder: string): string {
  return join(stateFolder, name);
}

/**
 * Creates the folder. Moves away an existing entry that is not an empty, read-only folder of this user. Safe for concurrent replicas.
 * Throws ConfigError.
 */
export async function makeProgramFolder(stateFolder: string): Promise<void> {
  try {
    await mkdir(stateFolder, { recursive: true, mode: 0o700 });
    await access(stateFolder, constants.W_OK);
  } catch (error) {
    throw new ConfigError(
      `the state folder ${stateFolder} is not writable (${errorMessage(error)}): set PARLEY_STATE to a writable folder, the same for all replicas of the workspace`,
    );
  }
  const folder = programFolderOf(stateFolder);
  for (;;) {
    try {
      await mkdir(folder, { mode: 0o500 });
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
    }
    if (await isSafe(folder)) return;
    try {
      await rename(folder, join(stateFolder, `.${name}-${randomUUID()}`));
    } catch (error) {
      // Another replica has already moved it.
      if (errnoOf(error) !== "ENOENT") throw error;
    }
  }
}

async function isSafe(folder: string): Promise<boolean> {
  try {
    const stats = await lstat(folder);
    const isOwn = process.getuid === undefined || stats.uid === process.getuid();
    return stats.isDirectory() && isOwn && (stats.mode & 0o277) === 0 && (await readdir(folder)).length === 0;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw error;
  }
}
