// Captures the current state of a path as a checkpoint record; file content goes into a sink.
import { constants } from "node:fs";
import { open, readlink } from "node:fs/promises";
import { errorMessage } from "@parley/contracts";
import type { CapturedFile } from "@parley/contracts";
import { describeFileError } from "../workspace/errors.ts";
import { inDirectory, kindOf } from "../workspace/directory-handles.ts";
import type { ContentSink } from "./content-store.ts";
import type { Entry } from "./entry.ts";

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
const permissionBits = 0o7777;
const linkBytes = 8_192;

/** Never throws: a path that cannot be read or stored becomes `untracked`, with the reason. */
export async function capture(entry: Entry, sink: ContentSink, maxBytes: number): Promise<CapturedFile> {
  const path = entry.relative;
  try {
    return await captureOrThrow(entry, sink, maxBytes);
  } catch (error) {
    const reason = describeFileError(error) ?? errorMessage(error);
    return { kind: "untracked", path, reason: reason.slice(0, 500) };
  }
}

async function captureOrThrow({ directory, name, relative: path, stats }: Entry, sink: ContentSink, maxBytes: number) {
  if (stats === null) return { kind: "absent" as const, path };
  if (stats.isDirectory()) return { kind: "directory" as const, path, mode: stats.mode & permissionBits };
  if (stats.isSymbolicLink()) {
    const target = await readlink(inDirectory(directory, name), { encoding: "buffer" });
    const kept = await sink(once(target), linkBytes);
    return kept === undefined
      ? { kind: "untracked" as const, path, reason: "the link target is too long" }
      : { kind: "link" as const, path, sha256: kept.sha256 };
  }
  if (!stats.isFile()) return { kind: "untracked" as const, path, reason: `it is ${kindOf(stats)}` };
  if (stats.size > maxBytes) return tooLarge(path, stats.size, maxBytes);
  await using handle = await open(inDirectory(directory, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  const opened = await handle.stat();
  const kept = await sink(handle.createReadStream({ autoClose: false, highWaterMark: 256 * 1024 }), maxBytes);
  if (kept === undefined) return tooLarge(path, opened.size, maxBytes);
  return { kind: "file" as const, path, ...kept, mode: opened.mode & permissionBits };
}

function tooLarge(path: string, size: number, maxBytes: number): CapturedFile {
  return { kind: "untracked", path, reason: `it has ${size} bytes; the limit is ${maxBytes}` };
}

async function* once(chunk: Uint8Array): AsyncGenerator<Uint8Array> {
  yield chunk;
}
