// Counts the disk usage of a folder file by file. Follows no links, skips other file systems, counts hard-linked files once, and
// stops early: a tree too large to count is treated as full.
import { lstat } from "node:fs/promises";
import { entriesBelow } from "./entries-below.ts";

const blockBytes = 512;
/** Minimum cost of a name: a million empty files are not free. */
export const leastBytes = 1024;
/** Counting stops after this many names and returns the sum so far. */
const maxNames = 2_000_000;

/** Disk usage below a folder in bytes. Entries that disappear or cannot be read do not count. */
export async function diskUsage(root: string): Promise<number> {
  const { dev } = await lstat(root);
  const several = new Set<number>();
  let bytes = 0;
  let names = 0;
  for await (const { stats } of entriesBelow(root, () => undefined, dev)) {
    names += 1;
    if (names > maxNames) break;
    if (!stats.isDirectory() && stats.nlink > 1) {
      if (several.has(stats.ino)) continue;
      several.add(stats.ino);
    }
    bytes += Math.max(stats.blocks * blockBytes, leastBytes);
  }
  return bytes;
}
