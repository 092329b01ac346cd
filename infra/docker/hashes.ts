// The servers of the compose file read files that Compose mounts and does not look into: a label with the file's hash lets
// `docker compose up` see that a server has to be made anew.

import { createHash } from "node:crypto";

/** The compose file with the hash of every file that stands behind a `parley.config` label, by its path in the repository. */
export function withHashes(compose: string, read: (path: string) => Uint8Array): string {
  return compose.replace(/(parley\.config: )"\w*"( # (\S+))/g, (_line, label: string, rest: string, path: string) => {
    const hash = createHash("sha256").update(read(path)).digest("hex").slice(0, 16);
    return `${label}"${hash}"${rest}`;
  });
}
