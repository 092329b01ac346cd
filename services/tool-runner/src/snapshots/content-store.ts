// Content store of checkpoints: files named by the SHA-256 of their content, on a volume that all replicas share, hidden from
// tools. A file is complete or absent.
//
// A sweep first renames a file to a trash name, checks whether a row refers to it, and restores it if so. A writer checks the file
// again after its row is written (`has`). So in any interleaving, content that a row refers to is kept.
import { createHash, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readdir, rename, stat, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "../workspace/errors.ts";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY, O_RDONLY } = constants;
const trashSuffix = ".trash";
const temporarySuffix = ".tmp";
const blobName = /^[0-9a-f]{64}$/;

interface Digest {
  sha256: string;
  /** Bytes. */
  size: number;
}

/** Consumes content and returns its digest; undefined when it is longer than `maxBytes`. */
export type ContentSink = (content: AsyncIterable<Uint8Array>, maxBytes: number) => Promise<Digest | undefined>;

/** Reads content to its end and stores nothing. */
export const digest: ContentSink = (content, maxBytes) => pass(content, maxBytes, async () => undefined);

export class ContentStore {
  /** Absolute or relative to the working directory. */
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Stores content under its hash. Passes on file system errors. */
  readonly put: ContentSink = async (content, maxBytes) => {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const temporary = join(this.folder, `.${randomBytes(12).toString("hex")}${temporarySuffix}`);
    const handle = await open(temporary, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600);
    try {
      let found: Digest | undefined;
      try {
        found = await pass(content, maxBytes, (chunk) => handle.writeFile(chunk));
      } finally {
        await handle.close();
      }
      if (found === undefined) await unlink(temporary);
      else await rename(temporary, this.#path(found.sha256));
      return found;
    } catch (error) {
      await unlink(temporary).catch(() => undefined);
      throw error;
    }
  };

  async has(sha256: string): Promise<boolean> {
    return (await modifiedAt(this.#path(sha256))) !== undefined;
  }

  /** Opens the content with a hash; undefined when it is not stored. The caller closes it. */
  async open(sha256: string): Promise<FileHandle | undefined> {
    for (const path of [this.#path(sha256), this.#path(sha256) + trashSuffix, this.#path(sha256)]) {
      try {
        return await open(path, O_RDONLY | O_NOFOLLOW);
      } catch (error) {
        if (errnoOf(error) !== "ENOENT") throw error;
      }
    }
    return undefined;
  }

  /** Removes unneeded content older than `graceMs` and returns the number removed. `unneeded` returns which hashes are not needed. */
  async sweep(unneeded: (sha256: readonly string[]) => Promise<readonly string[]>, graceMs: number): Promise<number> {
    const before = Date.now() - graceMs;
    const names = await readdir(this.folder).catch((error: unknown) => {
      if (errnoOf(error) === "ENOENT") return [];
      throw error;
    });
    const trash: string[] = [];
    for (const name of names) {
      const path = join(this.folder, name);
      const at = await modifiedAt(path);
      if (at === undefined || at > before) continue;
      if (name.endsWith(temporarySuffix)) await unlink(path).catch(() => undefined);
      else if (name.endsWith(trashSuffix)) trash.push(name.slice(0, -trashSuffix.length));
      else if (blobName.test(name) && (await moved(path, path + trashSuffix))) trash.push(name);
    }
    let removed = 0;
    for (let from = 0; from < trash.length; from += sweepPage) {
      const page = trash.slice(from, from + sweepPage);
      const unneededHashes = new Set(await unneeded(page));
      for (const sha256 of page) {
        const path = this.#path(sha256);
        if (!unneededHashes.has(sha256)) await moved(path + trashSuffix, path);
        else if (await unlink(path + trashSuffix).then(() => true, ignoreMissing)) removed += 1;
      }
    }
    return removed;
  }

  #path(sha256: string): string {
    return join(this.folder, sha256);
  }
}

/** Hashes checked per request. */
const sweepPage = 500;

async function pass(
  content: AsyncIterable<Uint8Array>,
  maxBytes: number,
  write: (chunk: Uint8Array) => Promise<void>,
): Promise<Digest | undefined> {
  const hash = createHash("sha256");
  let size = 0;
  for await (const chunk of content) {
    size += chunk.byteLength;
    if (size > maxBytes) return undefined;
    hash.update(chunk);
    await write(chunk);
  }
  return { sha256: hash.digest("hex"), size };
}

async function modifiedAt(path: string): Promise<number | undefined> {
  return stat(path).then(
    (stats) => stats.mtimeMs,
    (error: unknown) => {
      if (errnoOf(error) === "ENOENT") return undefined;
      throw error;
    },
  );
}

/** False when another sweep was faster. */
function moved(from: string, to: string): Promise<boolean> {
  return rename(from, to).then(() => true, ignoreMissing);
}

function ignoreMissing(error: unknown): false {
  if (errnoOf(error) === "ENOENT") return false;
  throw error;
}
