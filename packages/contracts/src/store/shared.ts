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

/** Of a change that is not the same when it is made twice. Omitted by gateways of older versions: each attempt of the request then counts. */
export const optionalOpId = z.uuid().optional();

export const Fenced = { opId: z.uuid(), epoch: z.number().int() };

export const LeaseRef = z.object({ name: z.string(), fence: z.number().int() });

/** Maximum bytes of the input of an action: what the strictest platform keeps with a button. */
const maxActionBytes = 64;

/** A button of a text, on channels that have them. A press counts as if the person had typed the input. */
export const ActionSchema = z.object({
  label: z.string().min(1).max(64),
  input: z
    .string()
    .min(1)
    .refine((text) => new TextEncoder().encode(text).length <= maxActionBytes, `has more than ${maxActionBytes} bytes`),
});
export type Action = z.infer<typeof ActionSchema>;

/** A text that goes out when the enclosing step commits. */
export const OutgoingSchema = z.object({
  address: ReplyAddressSchema,
  /** Empty only together with attachments. */
  text: z.string(),
  /** Each one becomes its own row after the text, sent in this order. */
  attachments: z.array(AttachmentSchema).max(maxAttachments).optional(),
  /** Shown with the end of the text where the channel has buttons; the text says how to answer without them. */
  actions: z.array(ActionSchema).max(8).optional(),
  /** Dropped if it could not be sent within this time. */
  expiresInMs: z.number().int().positive(),
});
export type Outgoing = z.infer<typeof OutgoingSchema>;
