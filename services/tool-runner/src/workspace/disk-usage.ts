// Counts the disk usage of a folder file by file. Follows no links, skips other file systems, counts hard-linked files once, and
// stops early: a tree too large to count is treated as full.
import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";

const blockBytes = 512;
/** Minimum cost of a name: a million empty files are not free. */
export const leastBytes = 1024;
/** Counting stops after this many names and returns the sum so far. */
const maxNames = 2_000_000;
const maxDepth = 256;

/** Disk usage below a folder in bytes. Entries that disappear or cannot be read do not count. */
export async function diskUsage(root: string): Promise<number> {
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
