// Walks a tree. Symbolic links are listed, not followed.
import type { Stats } from "node:fs";
import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";

interface FoundEntry {
  /** From the folder, with `/`. */
  path: string;
  stats: Stats;
}

const atOnce = 64;

/**
 * Every entry below a folder, directories included, except those that cannot be read. `onError` receives their errors, and when the
 * directory that cannot be read, or that contains the entry, last changed, in milliseconds since 1970 (the folder itself: infinity).
 * `device`: entries of other file systems are left out.
 */
export async function* entriesBelow(
  folder: string,
  onError: (error: unknown, changedMs: number) => undefined,
  device?: number,
): AsyncGenerator<FoundEntry> {
  const waiting = [{ path: "", changedMs: Number.POSITIVE_INFINITY }];
  for (let directory = waiting.pop(); directory !== undefined; directory = waiting.pop()) {
    const { path: above, changedMs } = directory;
    const skip = (error: unknown): undefined => onError(error, changedMs);
    const entryAt = async (name: string) => {
      const path = above === "" ? name : `${above}/${name}`;
      return { path, stats: await lstat(join(folder, path)).catch(skip) };
    };
    const listing = await opendir(join(folder, above), { bufferSize: atOnce }).catch(skip);
    if (listing === undefined) continue;
    for await (const names of batches(listing, skip)) {
      for (const { path, stats } of await Promise.all(names.map(entryAt))) {
        if (stats === undefined || (device !== undefined && stats.dev !== device)) continue;
        if (stats.isDirectory()) waiting.push({ path, changedMs: stats.ctimeMs });
        yield { path, stats };
      }
    }
  }
}

async function* batches(
  listing: AsyncIterable<{ name: string }>,
  onError: (error: unknown) => undefined,
): AsyncGenerator<string[]> {
  let names: string[] = [];
  try {
    for await (const { name } of listing) {
      if (names.push(name) < atOnce) continue;
      yield names;
      names = [];
    }
  } catch (error) {
    onError(error);
  }
  yield names;
}
