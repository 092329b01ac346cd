// Checks that the service's user can write to its folders, before anything else uses them.
import { randomUUID } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Startup } from "@parley/chassis";
import { errorMessage } from "@parley/contracts";
import { errnoOf } from "./errors.ts";

/** A folder that must be writable. */
export interface NeededFolder {
  /** Its purpose, for example "the workspace". */
  purpose: string;
  path: string;
  /** The environment variable that names it. */
  variable: string;
}

const pauseMs = 1_000;

/** Creates missing folders and resolves when all are writable; until then `startup` contains the reason. */
export async function waitForWritable(folders: readonly NeededFolder[], startup: Startup): Promise<void> {
  for (const folder of folders) {
    const { purpose } = folder;
    for (let problem = await whyNotWritable(folder); problem !== null; problem = await whyNotWritable(folder)) {
      startup.waiting(purpose, problem);
      await delay(pauseMs);
    }
    startup.arrived(purpose);
  }
}

/** Null when a file can be created in the folder, which is created if missing; otherwise the reason and the remedy. */
async function whyNotWritable({ purpose, path, variable }: NeededFolder): Promise<string | null> {
  const probe = join(path, `.parley-writable-${randomUUID()}`);
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await writeFile(probe, "");
    await rm(probe, { force: true });
    return null;
  } catch (error) {
    const code = errnoOf(error);
    // Space may become free at any time, and reading works until then: each tool reports a full disk itself.
    if (code === "ENOSPC" || code === "EDQUOT") return null;
    const user = process.getuid?.() ?? "this user";
    return (
      `${purpose} ${path} cannot be written by user ${user} (${code ?? errorMessage(error)}): ` +
      `change its owner with "chown ${user} ${path}", or set ${variable} to another folder`
    );
  }
}
