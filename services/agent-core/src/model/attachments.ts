// How a model is shown an attachment; pure. Each one is announced with its name, type, size and id, so that the agent can pass
// it on or save it; what the model can see follows.
import { sizeText, type Attachment } from "@parley/contracts";

export type ShownKind = "image" | "pdf" | "text" | "note";

const imageTypes = ["image/jpeg", "image/png", "image/gif", "image/webp"] as const;
type ImageType = (typeof imageTypes)[number];

/** Claude takes 5 MiB of base64 an image; nobody takes less. */
const maxImageBytes = Math.floor((5 * 1024 * 1024 * 3) / 4);
/** Claude takes 32 MB a request, base64 and everything else included. */
const maxPdfBytes = 20 * 1024 * 1024;
/** What a page of `read` holds as well. */
const maxTextBytes = 50 * 1024;

/** What of an attachment can be shown at all, by type and size. */
export function shownKind(mediaType: string, bytes: number): ShownKind {
  if (imageTypeOf(mediaType) !== undefined) return bytes <= maxImageBytes ? "image" : "note";
  if (mediaType === "application/pdf") return bytes <= maxPdfBytes ? "pdf" : "note";
  return mediaType === "text/plain" && bytes <= maxTextBytes ? "text" : "note";
}

function imageTypeOf(mediaType: string): ImageType | undefined {
  return imageTypes.find((type) => type === mediaType);
}

/** What one model takes. */
export interface Sees {
  images: boolean;
  pdfs: boolean;
}

export type Shown =
  | { kind: "image"; mediaType: ImageType; data: string }
  | { kind: "pdf"; data: string; name: string }
  | { kind: "text"; text: string };

/**
 * The pieces that stand for an attachment in a prompt: the line that names it, and its content where it can be shown.
 * `contents`: base64 by hash; what is not in it could not be had.
 */
export function showAttachment(
  attachment: Attachment,
  contents: ReadonlyMap<string, string> | undefined,
  sees: Sees,
): Shown[] {
  const { sha256, mediaType, name, bytes } = attachment;
  const line = (more: string): Shown => ({
    kind: "text",
    text: `[attachment "${name}", ${mediaType}, ${sizeText(bytes)}, id ${sha256}${more}]`,
  });
  const kind = shownKind(mediaType, bytes);
  if (kind === "note" || (kind === "image" && !sees.images) || (kind === "pdf" && !sees.pdfs)) {
    return [line(": it cannot be shown to you")];
  }
  const data = contents?.get(sha256);
  if (data === undefined) return [line(": it is not shown to you here")];
  const imageType = imageTypeOf(mediaType);
  if (kind === "text") return [line("; its text follows"), { kind: "text", text: textOfBase64(data) }];
  if (imageType !== undefined) return [line(""), { kind: "image", mediaType: imageType, data }];
  return [line(""), { kind: "pdf", data, name }];
}

function textOfBase64(data: string): string {
  return Buffer.from(data, "base64").toString("utf8");
}
