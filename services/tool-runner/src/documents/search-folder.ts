// Private folders with the documents of one search, which the search program reads. A crash leaves them; the next start removes them.
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { errnoOf } from "../workspace/errors.ts";

const prefix = "parley-search-";

interface SearchFolder extends AsyncDisposable {
  path: string;
  /** Documents that could not be written. */
  missing: number;
}

/** Writes documents into a private folder; disposal removes it. */
export async function writeSearchFolder(
  documents: readonly { path: string; content: string }[],
): Promise<SearchFolder> {
  const path = await mkdtemp(join(tmpdir(), `${prefix}${process.pid}-`));
  let missing = 0;
  for (const { path: name, content } of documents) {
    try {
      await mkdir(dirname(join(path, name)), { recursive: true });
      await writeFile(join(path, name), content);
    } catch {
      // A name that no file system can hold, such as one that is also a folder of other documents.
      missing += 1;
    }
  }
  return { path, missing, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Removes the folders of processes that have ended, an earlier one with this process's id included. */
export async function removeAbandonedSearchFolders(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = Number(new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1] ?? Number.NaN);
    const path = join(tmpdir(), name);
    if (Number.isInteger(pid) && (await isAbandoned(path, pid))) await rm(path, { recursive: true, force: true });
  }
}

async function isAbandoned(path: string, pid: number): Promise<boolean> {
  if (pid !== process.pid) return !isRunning(pid);
  const startedAtMs = Date.now() - process.uptime() * 1_000;
  return stat(path).then(
    ({ mtimeMs }) => mtimeMs < startedAtMs,
    () => false,
  );
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errnoOf(error) !== "ESRCH";
  }
}
