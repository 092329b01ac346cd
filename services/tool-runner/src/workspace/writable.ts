// Whether the folders of this service can be written by its user. It looks before anything else uses them.
import { randomUUID } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Startup } from "@parley/chassis";
import { errorMessage } from "@parley/contracts";
import { errnoOf } from "./errors.ts";

/** A folder that has to be writable. */
export interface NeededFolder {
  /** What it is for, as in "the workspace". */
  purpose: string;
  path: string;
  /** The environment variable that names it. */
  variable: string;
}

const pauseMs = 1_000;

/** Makes the folders where they are missing and resolves when all can be written; until then the reason is in `startup`. */
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

/** Null when a file can be made in the folder, which is made where it is missing; else the reason and what to do. */
async function whyNotWritable({ purpose, path, variable }: NeededFolder): Promise<string | null> {
  const probe = join(path, `.parley-writable-${randomUUID()}`);
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await writeFile(probe, "");
    await rm(probe, { force: true });
    return null;
  } catch (error) {
    const code = errnoOf(error);
    // Space may come back at any time, and reading works until then: a full disk is reported by each tool that meets it.
    if (code === "ENOSPC" || code === "EDQUOT") return null;
    const user = process.getuid?.() ?? "this user";
    return (
      `${purpose} ${path} cannot be written by user ${user} (${code ?? errorMessage(error)}): ` +
      `give the folder to that user, as in "chown ${user} ${path}", or name another one with ${variable}`
    );
  }
}
