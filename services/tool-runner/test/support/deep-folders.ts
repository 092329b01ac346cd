// Files that a path of one system call cannot reach.
import { constants, existsSync } from "node:fs";
import { mkdir, open, writeFile } from "node:fs/promises";

/** Why such files cannot be made on this system. */
export const skipDeep = existsSync("/proc/self/fd") ? false : "it needs /proc/self/fd";

/**
 * Makes directories with names of 250 characters, one in the other, and the file `deep.txt` in the innermost one. Remove them with
 * `rm -rf`.
 */
export async function makeDeep(folder: string, depth: number, content: string | Uint8Array): Promise<void> {
  let handle = await open(folder, constants.O_DIRECTORY);
  for (let level = 0; level < depth; level += 1) {
    const inner = `/proc/self/fd/${handle.fd}/${"d".repeat(250)}`;
    await mkdir(inner);
    const next = await open(inner, constants.O_DIRECTORY);
    await handle.close();
    handle = next;
  }
  await writeFile(`/proc/self/fd/${handle.fd}/deep.txt`, content);
  await handle.close();
}
