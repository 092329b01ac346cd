// Folders for private data.

import { chmodSync, mkdirSync, realpathSync } from "node:fs";

/** Makes a folder only we may enter, with ordinary folders above it where they are missing, and returns its real path. */
export function privateFolder(path: string): string {
  mkdirSync(path, { recursive: true });
  const real = realpathSync(path);
  chmodSync(real, 0o700);
  return real;
}
