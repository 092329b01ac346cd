// Files of a message on its way in: fetched from the platform and kept by the store, before the message itself is kept. What cannot
// be had is said in the message, which is never lost for it. A redelivery fetches again; the same content is kept once.
import { keepBlob, type Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import {
  errorMessage,
  attachmentName,
  maxAttachments,
  sizeText,
  WireError,
  type InboundMessage,
} from "@parley/contracts";
import type { OfferedFile } from "./channel.ts";

type Parts = InboundMessage["parts"];

export interface FilesInDeps {
  bus: Bus;
  log: Pick<Logger, "warn">;
  /** The largest file that is taken. */
  maxBytes: number;
}

/** How long one file may take to come. */
const fetchTimeoutMs = 60_000;

/** The parts that stand for the files. Throws the store's WireError when it is away: then nothing was kept. */
export async function takeFiles(deps: FilesInDeps, files: readonly OfferedFile[]): Promise<Parts> {
  const parts: Parts = [];
  for (const file of files.slice(0, maxAttachments)) parts.push(await takeFile(deps, file));
  const left = files.length - maxAttachments;
  if (left > 0) parts.push(note(`${left} more files were left out: a message has at most ${maxAttachments}`));
  return parts;
}

async function takeFile({ bus, log, maxBytes }: FilesInDeps, file: OfferedFile): Promise<Parts[number]> {
  const name = attachmentName(file.name, file.kind);
  const missing = (why: string) => note(`the ${file.kind} "${name}" did not come with this message: ${why}`);
  const tooLarge = `it is larger than ${sizeText(maxBytes)}`;
  if (file.bytes !== null && file.bytes > maxBytes) return missing(tooLarge);
  let content: Uint8Array | "too_large";
  try {
    content = await file.fetch(maxBytes, AbortSignal.timeout(fetchTimeoutMs));
  } catch (error) {
    const reason = errorMessage(error);
    log.warn({ kind: file.kind, bytes: file.bytes, reason }, "a file could not be fetched from the platform");
    return missing("it could not be fetched");
  }
  if (content === "too_large") return missing(tooLarge);
  try {
    const { sha256, mediaType, bytes } = await keepBlob(bus, content);
    return { type: "blob", sha256, mediaType, name, bytes };
  } catch (error) {
    if (!WireError.is(error, "TOO_LARGE", "INVALID_INPUT")) throw error;
    return missing(error.message);
  }
}

function note(text: string): Parts[number] {
  return { type: "text", text: `[${text}]` };
}
