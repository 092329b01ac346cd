// Fetches the files of an inbound message from the platform and stores them before the message. A note in the message replaces a file
// that cannot be fetched. A redelivery fetches again; identical content is stored once.
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
import type { ChannelAdapter, IncomingFile } from "../channels/channel.ts";

type Parts = InboundMessage["parts"];

export interface AttachmentDeps {
  bus: Bus;
  log: Pick<Logger, "warn">;
  /** The largest accepted file. */
  maxBytes: number;
  /** Undefined: the channel has no files. */
  fetchFile: ChannelAdapter["fetchFile"];
}

/** Timeout for fetching one file. */
const fetchTimeoutMs = 60_000;

/** Returns the message parts for the files. Throws the store's WireError when it is unavailable. */
export async function storeFiles(deps: AttachmentDeps, files: readonly IncomingFile[]): Promise<Parts> {
  const parts: Parts = [];
  for (const file of files.slice(0, maxAttachments)) parts.push(await takeFile(deps, file));
  const left = files.length - maxAttachments;
  if (left > 0) parts.push(note(`${left} more files were left out: a message may have at most ${maxAttachments}`));
  return parts;
}

async function takeFile({ bus, log, maxBytes, fetchFile }: AttachmentDeps, file: IncomingFile): Promise<Parts[number]> {
  const name = attachmentName(file.name, file.kind);
  const missing = (why: string) => note(`the ${file.kind} "${name}" is missing from this message: ${why}`);
  const tooLarge = `it is larger than ${sizeText(maxBytes)}`;
  if (file.bytes !== null && file.bytes > maxBytes) return missing(tooLarge);
  if (fetchFile === undefined) return missing("this channel has no files");
  let content: Uint8Array | "too_large";
  try {
    content = await fetchFile(file.handle, maxBytes, AbortSignal.timeout(fetchTimeoutMs));
  } catch (error) {
    const reason = errorMessage(error);
    log.warn({ kind: file.kind, bytes: file.bytes, reason }, "file not fetched from the platform");
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
