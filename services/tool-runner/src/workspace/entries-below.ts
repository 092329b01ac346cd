// Walks a tree. Symbolic links are listed, not followed.
import type { Stats } from "node:fs";
import { lstat, opendir } from "node:fs/promises";
import { joinBytes, openAt } from "./byte-paths.ts";

interface FoundEntry {
  /** From the folder, with `/`; its bytes, because a name need not be valid UTF-8. */
  path: Buffer;
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
  const root = Buffer.from(folder);
  const waiting: { path?: Buffer; changedMs: number }[] = [{ changedMs: Number.POSITIVE_INFINITY }];
  for (let directory = waiting.pop(); directory !== undefined; directory = waiting.pop()) {
    const { path: above, changedMs } = directory;
    const skip = (error: unknown): undefined => onError(error, changedMs);
    await using opened = await openAt(above === undefined ? root : joinBytes(root, above)).catch(skip);
    if (opened === undefined) continue;
    const entryAt = async (name: Buffer) => ({
      path: above === undefined ? name : joinBytes(above, name),
      stats: await lstat(joinBytes(opened.path, name)).catch(skip),
    });
    for await (const names of namesIn(opened.path, skip)) {
      for (const { path, stats } of await Promise.all(names.map(entryAt))) {
        if (stats === undefined || (device !== undefined && stats.dev !== device)) continue;
        if (stats.isDirectory()) waiting.push({ path, changedMs: stats.ctimeMs });
        yield { path, stats };
      }
    }
  }
}

async function* namesIn(folder: Buffer, onError: (error: unknown) => undefined): AsyncGenerator<Buffer[]> {
  let names: Buffer[] = [];
  try {
    // The type of the option lacks this value, with which the names are buffers.
    const encoding = "buffer" as BufferEncoding;
    for await (const { name } of await opendir(folder, { encoding, bufferSize: atOnce })) {
      if (names.push(Buffer.from(name)) < atOnce) continue;
      yield names;
      names = [];
    }
  } catch (error) {
    onError(error);
  }
  yield names;
}
