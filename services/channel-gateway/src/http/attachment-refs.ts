// Resolves the attachments that an API client references in a message.
import type { Bus } from "@parley/bus";
import { attachmentName, maxAttachments, Sha256Schema, store, type Attachment } from "@parley/contracts";
import { z } from "zod";
import { HttpError } from "./errors.ts";

/** `id`: the `sha256` returned by POST /api/attachments. */
export const AttachmentRefs = z
  .array(z.strictObject({ id: Sha256Schema, name: z.string().max(1_000).optional() }))
  .max(maxAttachments)
  .optional();
export type AttachmentRefs = z.infer<typeof AttachmentRefs>;

/** Type and size come from the store. Throws HttpError 400 for an unknown attachment. */
export async function attachmentsOf(bus: Bus, refs: AttachmentRefs): Promise<Attachment[]> {
  if (refs === undefined || refs.length === 0) return [];
  const { blobs } = await bus.request(store.blobHead, { sha256: refs.map(({ id }) => id) });
  return refs.map(({ id, name }) => {
    const blob = blobs.find(({ sha256 }) => sha256 === id);
    if (blob === undefined) {
      throw new HttpError(
        400,
        "no_such_attachment",
        `there is no attachment ${id}; upload it with POST /api/attachments first`,
      );
    }
    return { ...blob, name: attachmentName(name, "file") };
  });
}
