// The folder that programs outside of the sandbox run in: empty, and not writable, so that nothing they load from where they run can
// be put there.
import { ConfigError } from "@parley/chassis";
import { errorMessage } from "@parley/contracts";
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { access, lstat, mkdir, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "./workspace/errors.ts";

const name = "program-cwd";

/** What programs outside of the sandbox see of the environment unless their settings name another value: Python loads nothing from where it runs. */
export const safeVariables: Readonly<Record<string, string>> = { PYTHONSAFEPATH: "1", PYTHONNOUSERSITE: "1" };

export function programFolderOf(stateFolder: string): string {
  return join(stateFolder, name);
}

/** Makes the folder. What is there and is not an empty folder of this user is moved away. Safe for several replicas at a time. Throws ConfigError. */
export async function makeProgramFolder(stateFolder: string): Promise<void> {
  try {
    await mkdir(stateFolder, { recursive: true, mode: 0o700 });
    await access(stateFolder, constants.W_OK);
  } catch (error) {
    throw new ConfigError(
      `the state folder ${stateFolder} cannot be written (${errorMessage(error)}): set PARLEY_STATE to a folder that can, the same one for all replicas that share the workspace`,
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
      // Another replica was faster.
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
