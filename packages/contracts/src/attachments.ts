// Attachments: content that is too large for a message, known by its hash. The store keeps it once; everybody else passes the
// reference on.
import { z } from "zod";

export const Sha256Schema = z.string().regex(/^[0-9a-f]{64}$/, "a SHA-256 hash in small hexadecimal letters");

/** Characters of a name that is kept. */
export const maxAttachmentName = 200;
/** Attachments of one message, in either direction. */
export const maxAttachments = 10;

export const AttachmentSchema = z.object({
  /** Of the content, and its id. */
  sha256: Sha256Schema,
  /** What the content is, read from its first bytes by the store; what a sender called it does not count. */
  mediaType: z.string(),
  /** For people; `attachmentName` has made it harmless. */
  name: z.string().min(1).max(maxAttachmentName),
  bytes: z.number().int().nonnegative(),
});
export type Attachment = z.infer<typeof AttachmentSchema>;

/** A name as a sender gave it → one that is no path, holds nothing invisible and has a bounded length. */
export function attachmentName(given: string | undefined, otherwise: string): string {
  const last = (given ?? "").toWellFormed().split(/[\\/]/).at(-1) ?? "";
  const visible = last.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "").replace(/^[.\s]+|\s+$/g, "");
  if (visible === "") return otherwise;
  if (visible.length <= maxAttachmentName) return visible;
  const extension = /\.\w{1,10}$/.exec(visible)?.[0] ?? "";
  return `${visible.slice(0, maxAttachmentName - extension.length)}${extension}`.toWellFormed();
}

/** How people and models read a size. */
export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  const kibibytes = bytes / 1024;
  return kibibytes < 1024 ? `${kibibytes.toFixed(1)} KiB` : `${(kibibytes / 1024).toFixed(1)} MiB`;
}
