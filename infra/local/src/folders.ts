// Folders for private data.

import { chmodSync, mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from "node:fs";

/** Creates a folder with mode 0700, and missing parents with default modes. Returns its real path. */
export function privateFolder(path: string): string {
  mkdirSync(path, { recursive: true });
  const real = realpathSync(path);
  chmodSync(real, 0o700);
  return real;
}

/** Writes a private file atomically, unless it already has this content: a server can then restart on a full disk. */
export function keepFile(path: string, content: string): void {
  try {
    if (readFileSync(path, "utf8") === content) return;
  } catch {
    // Missing: written below.
  }
  writeFileSync(`${path}.new`, content, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
