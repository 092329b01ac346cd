// Iterates over every file below a folder. Symbolic links are listed, not followed; files that disappear meanwhile are skipped.
import type { Stats } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "./errors.ts";

interface FoundFile {
  /** From the folder, with `/`. */
  path: string;
  stats: Stats;
}

/** Directories are walked, not listed. Throws file system errors other than missing or unreadable entries. */
export async function* filesBelow(folder: string): AsyncGenerator<FoundFile> {
  const waiting = [""];
  for (;;) {
    const directory = waiting.pop();
    if (directory === undefined) return;
    const entries = await readdir(join(folder, directory), { withFileTypes: true }).catch(skipped);
    for (const entry of entries ?? []) {
      const path = directory === "" ? entry.name : `${directory}/${entry.name}`;
      if (entry.isDirectory()) {
        waiting.push(path);
        continue;
      }
      const stats = await lstat(join(folder, path)).catch(skipped);
      if (stats !== undefined) yield { path, stats };
    }
  }
}

function skipped(error: unknown): undefined {
  const code = errnoOf(error);
  if (code !== "ENOENT" && code !== "ENOTDIR" && code !== "EACCES") throw error;
}
