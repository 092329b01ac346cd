// Schemas that several store subjects share.
import { z } from "zod";
import { AttachmentSchema, maxAttachments } from "../attachments.ts";
import { request } from "../contract.ts";
import { ReplyAddressSchema } from "../inbound.ts";

/** A request that the store serves. */
export function storeRequest<I extends z.ZodType, O extends z.ZodType>(
  contract: Omit<Parameters<typeof request<I, O>>[0], "server">,
) {
  return request<I, O>({ server: "store", ...contract });
}

export const Empty = z.object({});

export const Fenced = { opId: z.uuid(), epoch: z.number().int() };

export const LeaseRef = z.object({ name: z.string(), fence: z.number().int() });

/** A text that goes out when the enclosing step commits. */
export const OutgoingSchema = z.object({
  address: ReplyAddressSchema,
  /** Empty only together with attachments. */
  text: z.string(),
  /** Each one becomes its own row after the text, sent in this order. */
  attachments: z.array(AttachmentSchema).max(maxAttachments).optional(),
  /** Dropped if it could not be sent within this time. */
  expiresInMs: z.number().int().positive(),
});
export type Outgoing = z.infer<typeof OutgoingSchema>;
