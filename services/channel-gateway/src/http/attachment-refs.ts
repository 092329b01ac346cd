// Attachments as a client of the API names them in a message, and what the store knows of them.
import type { Bus } from "@parley/bus";
import { attachmentName, maxAttachments, Sha256Schema, store, type Attachment } from "@parley/contracts";
import { z } from "zod";
import { HttpError } from "./errors.ts";

/** `id`: the `sha256` that POST /api/attachments has answered. */
export const AttachmentRefs = z
  .array(z.strictObject({ id: Sha256Schema, name: z.string().max(1_000).optional() }))
  .max(maxAttachments)
  .optional();
export type AttachmentRefs = z.infer<typeof AttachmentRefs>;

/** Type and size are the store's. Throws HttpError 400 for what it does not have. */
export async function attachmentsOf(bus: Bus, refs: AttachmentRefs): Promise<Attachment[]> {
  if (refs === undefined || refs.length === 0) return [];
  const { blobs } = await bus.request(store.blobHead, { sha256: refs.map(({ id }) => id) });
  return refs.map(({ id, name }) => {
    const blob = blobs.find(({ sha256 }) => sha256 === id);
    if (blob === undefined) {
      throw new HttpError(
        400,
        "no_such_attachment",
        `there is no attachment ${id}; send it with POST /api/attachments`,
      );
    }
    return { ...blob, name: attachmentName(name, "file") };
  });
}
