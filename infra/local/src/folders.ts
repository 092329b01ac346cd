// Folders for private data.

import { chmodSync, mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from "node:fs";

/** Makes a folder only we may enter, with ordinary folders above it where they are missing, and returns its real path. */
export function privateFolder(path: string): string {
  mkdirSync(path, { recursive: true });
  const real = realpathSync(path);
  chmodSync(real, 0o700);
  return real;
}

/** Writes a private file, whole or not at all, unless it has this content already: a server then restarts on a full disk too. */
export function keepFile(path: string, content: string): void {
  try {
    if (readFileSync(path, "utf8") === content) return;
  } catch {
    // Missing: written below.
  }
  writeFileSync(`${path}.new`, content, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
