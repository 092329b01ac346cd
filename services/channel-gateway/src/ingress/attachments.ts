// The files of an inbound message as parts: content that came with the message is stored first; files on the platform stay pending and are
// fetched after the message is stored (file-fetcher.ts). A note replaces a file that cannot be accepted.
import { storeBlob, type Bus } from "@parley/bus";
import {
  attachmentName,
  maxAttachments,
  missingFileText,
  sizeText,
  WireError,
  type InboundMessage,
} from "@parley/contracts";
import type { IncomingFile } from "../channels/channel.ts";

type Parts = InboundMessage["parts"];

/** A file that is still on the platform. */
export type PendingFile = Extract<Parts[number], { type: "pending_file" }>;
export type FilePart = Extract<Parts[number], { type: "text" | "blob" }>;

/**
 * How long a replica has claimed the files of a message before another one may fetch them, and how long a conversation waits for files
 * before notes replace them.
 */
export const fileTimes = { claimMs: 6_000, dueMs: 120_000 } as const;

export function isPendingFile(part: Parts[number]): part is PendingFile {
  return part.type === "pending_file";
}

/** Returns the message parts for the files. Throws the store's WireError when it is unavailable. */
export async function partsOfFiles(bus: Bus, maxBytes: number, files: readonly IncomingFile[]): Promise<Parts> {
  const parts: Parts = [];
  for (const file of files.slice(0, maxAttachments)) parts.push(await partOf(bus, maxBytes, file));
  const omitted = files.length - maxAttachments;
  if (omitted > 0) {
    const what = omitted === 1 ? "1 more file was" : `${omitted} more files were`;
    const text = `[${what} omitted: a message may have at most ${maxAttachments}]`;
    parts.push({ type: "text", text });
  }
  return parts;
}

/** The longest handle and names that the store accepts. */
const maxHandleChars = 2_048;
const maxNameChars = 1_000;
const maxKindChars = 40;

async function partOf(bus: Bus, maxBytes: number, file: IncomingFile): Promise<Parts[number]> {
  const { handle = "", content } = file;
  const kind = file.kind.slice(0, maxKindChars);
  const name = file.name?.slice(0, maxNameChars);
  const bytes = Number.isSafeInteger(file.bytes) ? file.bytes : null;
  if (content !== undefined) return storedFile(bus, maxBytes, { kind, name }, content);
  if (bytes !== null && bytes > maxBytes) return missingFile({ kind, name }, tooLargeText(maxBytes));
  if (handle === "" || handle.length > maxHandleChars) return missingFile({ kind, name }, unfetchedText);
  const size = bytes === null || bytes < 0 ? null : bytes;
  return { type: "pending_file", kind, bytes: size, handle, ...(name === undefined ? {} : { name }) };
}

/** Stores content. Returns a note when the store does not accept it; throws its WireError when it is unavailable. */
export async function storedFile(
  bus: Bus,
  maxBytes: number,
  { kind, name }: { kind: string; name?: string | undefined },
  content: Uint8Array | "too_large",
): Promise<FilePart> {
  if (content === "too_large" || content.length > maxBytes) return missingFile({ kind, name }, tooLargeText(maxBytes));
  try {
    const { sha256, mediaType, bytes } = await storeBlob(bus, content);
    return { type: "blob", sha256, mediaType, name: attachmentName(name, kind), bytes };
  } catch (error) {
    if (!WireError.is(error, "TOO_LARGE", "INVALID_INPUT")) throw error;
    return missingFile({ kind, name }, error.message);
  }
}

/** A note in the place of a file. */
export function missingFile({ kind, name }: { kind: string; name?: string | undefined }, reason: string): FilePart {
  return { type: "text", text: missingFileText(kind, name, reason) };
}

/** The reason of a note for a file that the platform did not give. */
export const unfetchedText = "it could not be fetched";

function tooLargeText(maxBytes: number): string {
  return `it is larger than ${sizeText(maxBytes)}`;
}
