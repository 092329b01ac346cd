// Attachments: content that is too large for a message, identified by its hash. The store holds the content once; all other services
// pass references.
import { z } from "zod";

export const Sha256Schema = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256 hash in lower-case hexadecimal");

/** Maximum length of a stored name, in characters. */
export const maxAttachmentName = 200;
/** Maximum number of attachments of one message, inbound or outbound. */
export const maxAttachments = 10;

export const AttachmentSchema = z.object({
  /** Hash of the content; it is also the id. */
  sha256: Sha256Schema,
  /** Detected by the store from the first bytes; the type that the sender declared is ignored. */
  mediaType: z.string(),
  /** For display; sanitized by `attachmentName`. */
  name: z.string().min(1).max(maxAttachmentName),
  bytes: z.number().int().nonnegative(),
});
export type Attachment = z.infer<typeof AttachmentSchema>;

/** Sanitizes a sender's file name: no path, no invisible characters, bounded length. Returns `otherwise` when nothing is left. */
export function attachmentName(given: string | undefined, otherwise: string): string {
  const last = (given ?? "").toWellFormed().split(/[\\/]/).at(-1) ?? "";
  const visible = last.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "").replace(/^[.\s]+|\s+$/g, "");
  if (visible === "") return otherwise;
  if (visible.length <= maxAttachmentName) return visible;
  const extension = /\.\w{1,10}$/.exec(visible)?.[0] ?? "";
  return `${visible.slice(0, maxAttachmentName - extension.length)}${extension}`.toWellFormed();
}

/** The note in a message that replaces a file. */
export function missingFileText(kind: string, name: string | undefined, reason: string): string {
  return `[the ${kind} "${attachmentName(name, kind)}" is missing from this message: ${reason}]`;
}

/** A size in a human-readable unit. */
export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  const kibibytes = bytes / 1024;
  return kibibytes < 1024 ? `${kibibytes.toFixed(1)} KiB` : `${(kibibytes / 1024).toFixed(1)} MiB`;
}
