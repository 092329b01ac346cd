// How an attachment appears in a prompt; pure. A line with its name, type, size and id comes first, so that the agent
// can pass it on or save it; then the content, if the model supports it.
import { sizeText, type Attachment } from "@parley/contracts";

export type ShownKind = "image" | "pdf" | "text" | "note";

const imageTypes = ["image/jpeg", "image/png", "image/gif", "image/webp"] as const;
type ImageType = (typeof imageTypes)[number];

/** Claude accepts 5 MiB of base64 per image; no provider accepts less. */
const maxImageBytes = Math.floor((5 * 1024 * 1024 * 3) / 4);
/** Claude accepts 32 MB per request, including base64 and everything else. */
const maxPdfBytes = 20 * 1024 * 1024;
/** Same as one page of the tool `read`. */
const maxTextBytes = 50 * 1024;

/** How an attachment can be shown, by type and size. */
export function shownKind(mediaType: string, bytes: number): ShownKind {
  if (imageTypeOf(mediaType) !== undefined) return bytes <= maxImageBytes ? "image" : "note";
  if (mediaType === "application/pdf") return bytes <= maxPdfBytes ? "pdf" : "note";
  return mediaType === "text/plain" && bytes <= maxTextBytes ? "text" : "note";
}

function imageTypeOf(mediaType: string): ImageType | undefined {
  return imageTypes.find((type) => type === mediaType);
}

/** The media types that one model accepts. */
export interface MediaSupport {
  images: boolean;
  pdfs: boolean;
}

export type RenderedAttachment =
  | { kind: "image"; mediaType: ImageType; data: string }
  | { kind: "pdf"; data: string; name: string }
  | { kind: "text"; text: string };

/**
 * The parts that represent an attachment in a prompt: a line that names it, then its content if it can be shown.
 * `contents`: base64 by hash; missing contents were not available.
 */
export function renderAttachment(
  attachment: Attachment,
  contents: ReadonlyMap<string, string> | undefined,
  sees: MediaSupport,
): RenderedAttachment[] {
  const { sha256, mediaType, name, bytes } = attachment;
  const line = (more: string): RenderedAttachment => ({
    kind: "text",
    text: `[attachment "${name}", ${mediaType}, ${sizeText(bytes)}, id ${sha256}${more}]`,
  });
  const kind = shownKind(mediaType, bytes);
  if (kind === "note" || (kind === "image" && !sees.images) || (kind === "pdf" && !sees.pdfs)) {
    return [line(": it cannot be shown to you")];
  }
  const data = contents?.get(sha256);
  if (data === undefined) return [line(": its content is not included here")];
  const imageType = imageTypeOf(mediaType);
  if (kind === "text") return [line("; its text follows"), { kind: "text", text: textOfBase64(data) }];
  if (imageType !== undefined) return [line(""), { kind: "image", mediaType: imageType, data }];
  return [line(""), { kind: "pdf", data, name }];
}

function textOfBase64(data: string): string {
  return Buffer.from(data, "base64").toString("utf8");
}
