// Compose mounts the servers' configuration files without comparing their content: a label with a file's hash makes
// `docker compose up` recreate the container when the file changes.

import { createHash } from "node:crypto";

/** The compose file with updated hashes in its `parley.…` labels. A comment after each label contains the file's path. */
export function withHashes(compose: string, read: (path: string) => Uint8Array): string {
  return compose.replace(/(parley\.\w+: )"\w*"( # (\S+))/g, (_line, label: string, rest: string, path: string) => {
    const hash = createHash("sha256").update(read(path)).digest("hex").slice(0, 16);
    return `${label}"${hash}"${rest}`;
  });
}
