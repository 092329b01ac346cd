// What several of the store's verbs have in common.
import { z } from "zod";
import { AttachmentSchema, maxAttachments } from "../attachments.ts";
import { ReplyAddressSchema } from "../inbound.ts";

export const Empty = z.object({});

export const Fenced = { opId: z.uuid(), epoch: z.number().int() };

export const LeaseRef = z.object({ name: z.string(), fence: z.number().int() });

/** A text that goes out when the enclosing step commits. */
export const OutgoingSchema = z.object({
  address: ReplyAddressSchema,
  /** Empty only beside attachments. */
  text: z.string(),
  /** Each one is a row of its own behind the text, sent in this order. */
  attachments: z.array(AttachmentSchema).max(maxAttachments).optional(),
  /** A message that nobody wants late: dropped when it could not be sent by then. */
  expiresInMs: z.number().int().positive(),
});
export type Outgoing = z.infer<typeof OutgoingSchema>;
