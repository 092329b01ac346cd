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
 * Every entry below a folder, directories included. `onError` receives the error of an entry that cannot be read; it may end the walk by
 * throwing. `device`: entries of other file systems are left out.
 */
export async function* entriesBelow(
  folder: string,
  onError: (error: unknown) => undefined,
  device?: number,
): AsyncGenerator<FoundEntry> {
  const entryAt = async (path: string) => ({ path, stats: await lstat(join(folder, path)).catch(onError) });
  const waiting = [""];
  for (let directory = waiting.pop(); directory !== undefined; directory = waiting.pop()) {
    const listing = await opendir(join(folder, directory), { bufferSize: atOnce }).catch(onError);
    if (listing === undefined) continue;
    const above = directory === "" ? "" : `${directory}/`;
    for await (const names of batches(listing)) {
      for (const { path, stats } of await Promise.all(names.map((name) => entryAt(`${above}${name}`)))) {
        if (stats === undefined || (device !== undefined && stats.dev !== device)) continue;
        if (stats.isDirectory()) waiting.push(path);
        yield { path, stats };
      }
    }
  }
}

async function* batches(listing: AsyncIterable<{ name: string }>): AsyncGenerator<string[]> {
  let names: string[] = [];
  for await (const { name } of listing) {
    if (names.push(name) < atOnce) continue;
    yield names;
    names = [];
  }
  yield names;
}
