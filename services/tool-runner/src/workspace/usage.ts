// How much of the disk a folder takes, counted file by file. It follows no link, leaves out what is on another disk, counts a file with several names once
// and stops early: a tree that is too large to count is as good as one that is full.
import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";

const blockBytes = 512;
/** What a name costs at least: a million empty files are not free. */
export const leastBytes = 1024;
/** Above this many names counting stops; what was counted until then is the answer. */
const maxNames = 2_000_000;
const maxDepth = 256;

/** Bytes on the disk below a folder. What disappears or cannot be read while it is looked at counts nothing. */
export async function bytesBelow(root: string): Promise<number> {
  const { dev } = await lstat(root);
  const several = new Set<number>();
  let bytes = 0;
  let names = 0;
  const waiting = [{ folder: root, depth: 0 }];
  for (let next = waiting.pop(); next !== undefined && names < maxNames; next = waiting.pop()) {
    const { folder, depth } = next;
    const directory = await opendir(folder).catch(() => undefined);
    if (directory === undefined) continue;
    for await (const { name } of directory) {
      names += 1;
      const path = join(folder, name);
      const stats = await lstat(path).catch(() => undefined);
      if (stats === undefined || stats.dev !== dev) continue;
      if (stats.isDirectory()) {
        if (depth < maxDepth) waiting.push({ folder: path, depth: depth + 1 });
      } else if (stats.nlink > 1) {
        if (several.has(stats.ino)) continue;
        several.add(stats.ino);
      }
      bytes += Math.max(stats.blocks * blockBytes, leastBytes);
    }
  }
  return bytes;
}
