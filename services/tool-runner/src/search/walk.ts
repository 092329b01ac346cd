// Walks a tree from an open directory, descriptor by descriptor, without following symbolic links. Synchronous: it must run in the
// search thread only.
import { closeSync, constants, existsSync, openSync, readdirSync } from "node:fs";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
const byDescriptor = existsSync("/proc/self/fd");
/** Directories with generated content. A search that starts inside one does search it. */
const skippedDirectories = new Set([".git", ".parley", "node_modules"]);
const maxDepth = 64;

export interface OpenDirectory {
  fd: number;
  path: string;
}

export interface FoundFile {
  directory: OpenDirectory;
  name: string;
  /** Path from the start of the walk. */
  relative: string;
}

export interface WalkCounts {
  unreadable: number;
}

export function below(directory: OpenDirectory, name: string): string {
  return byDescriptor ? `/proc/self/fd/${directory.fd}/${name}` : `${directory.path}/${name}`;
}

interface Within {
  /** Names in the first directory to skip. */
  hidden?: ReadonlySet<string>;
  relative?: string;
  depth?: number;
}

/** Yields regular files, directory by directory, sorted by name. */
export function* walkFiles(
  directory: OpenDirectory,
  counts: WalkCounts,
  { hidden, relative = "", depth = 0 }: Within = {},
): Generator<FoundFile> {
  let entries;
  try {
    entries = readdirSync(below(directory, "."), { withFileTypes: true });
  } catch {
    counts.unreadable += 1;
    return;
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    if (hidden?.has(entry.name) === true) continue;
    const path = relative === "" ? entry.name : `${relative}/${entry.name}`;
    if (entry.isFile()) {
      yield { directory, name: entry.name, relative: path };
    } else if (entry.isDirectory() && !skippedDirectories.has(entry.name) && depth < maxDepth) {
      let fd: number;
      try {
        fd = openSync(below(directory, entry.name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      } catch {
        counts.unreadable += 1;
        continue;
      }
      try {
        yield* walkFiles({ fd, path: `${directory.path}/${entry.name}` }, counts, {
          relative: path,
          depth: depth + 1,
        });
      } finally {
        closeSync(fd);
      }
    }
  }
}
