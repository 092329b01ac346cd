// Content in a folder that all replicas of the store share: one file per object, in 256 subfolders by the first two characters of the name.
import { mkdir, open, rename, rm, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { BlobBackend } from "./backend.ts";

export function filesystemBackend(root: string): BlobBackend {
  const pathOf = (object: string) => join(root, object.slice(0, 2), object);
  const draftOf = (path: string) => `${path}.part`;
  return {
    name: "folder",
    async write({ object, chunks }) {
      const path = pathOf(object);
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      const draft = draftOf(path);
      try {
        await writeFlushed(draft, chunks());
        await rename(draft, path);
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
      // The rename is durable only after the folder is flushed.
      await flush(await open(dirname(path), "r"));
    },
    async read(object, offset, length) {
      let file: FileHandle;
      try {
        file = await open(pathOf(object), "r");
      } catch (error) {
        if (isMissing(error)) return null;
        throw error;
      }
      try {
        const buffer = Buffer.alloc(length);
        const { bytesRead } = await file.read(buffer, 0, length, offset);
        return buffer.subarray(0, bytesRead);
      } finally {
        await file.close();
      }
    },
    async remove(object) {
      const path = pathOf(object);
      // A killed writer can leave a draft.
      await rm(draftOf(path), { force: true });
      await rm(path, { force: true });
    },
  };
}

async function writeFlushed(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    for await (const chunk of content) await file.writeFile(chunk);
  } catch (error) {
    await file.close();
    throw error;
  }
  await flush(file);
}

async function flush(file: FileHandle): Promise<void> {
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
