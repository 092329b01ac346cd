// An inbound message: every channel adapter converts its platform's updates to it.
import { z } from "zod";
import { AnswerRequirementsSchema } from "./answer.ts";
import { BinaryPart, BlobPart, ForwardedSchema, PendingFilePart, QuotePart, TextPart } from "./messages.ts";
import { approvalAnswerers, contactRoles, origins } from "./principals.ts";
import { queueModes } from "./settings/queue.ts";

/** The destination of an answer. It never depends on the session. */
export const ReplyAddressSchema = z.object({
  channel: z.string().min(1),
  account: z.string().min(1),
  conversation: z.string().min(1),
  /** The platform's id of the message to reply to, where the platform displays replies. */
  replyToId: z.string().optional(),
  /** What the adapter needs to answer: an interaction token, the address of a tenant's service. Opaque to everything else. */
  context: z.string().max(2_048).optional(),
});
export type ReplyAddress = z.infer<typeof ReplyAddressSchema>;

/** Maximum size of one inbound message as encoded JSON: half of the bus's payload limit. */
export const maxInboundBytes = 256 * 1024;

export const InboundMessageSchema = z.object({
  /** Kind of platform: `http`, `hook`, or the name of a channel */
  channel: z.string().min(1),
  /** One login on it; `default` where there is only one. */
  account: z.string().min(1),
  /** The platform's id of this message, unique within channel and account: a redelivery has the same id. */
  externalId: z.string().min(1).max(512),
  /** The platform's id that edits and deletions name. Omitted: `externalId`. */
  messageId: z.string().min(1).max(512).optional(),
  /** When it was sent, by the platform's clock: ISO 8601, UTC. */
  sentAt: z.iso.datetime().optional(),
  /** One chat there. */
  conversation: z.string().min(1).max(512),
  contact: z.object({ id: z.string(), name: z.string().optional() }),
  role: z.enum(contactRoles),
  origin: z.enum(origins),
  /** False in a group; omitted: a conversation with one person. */
  direct: z.boolean().optional(),
  /** The sender forwarded it; somebody else wrote it. It is untrusted, also when the owner forwarded it. */
  forwarded: ForwardedSchema.optional(),
  /** The text comes from a tainted turn. */
  tainted: z.boolean().optional(),
  parts: z.array(z.discriminatedUnion("type", [TextPart, BinaryPart, BlobPart, QuotePart, PendingFilePart])).min(1),
  /** Null where the sender reads the answer from the session itself (HTTP, WebSocket) or expects none. */
  replyTo: ReplyAddressSchema.nullable(),
  /** Who can answer approval questions about the tool calls it leads to. Omitted: `sender`. */
  approvals: z.enum(approvalAnswerers).optional(),
  /** How it is queued while the session is busy. Omitted: it waits for its turn. */
  mode: z.enum(queueModes).optional(),
  /** `coalesce`: how long it waits for further messages of the same sender on the same route, in milliseconds. */
  windowMs: z.number().int().nonnegative().optional(),
  /**
   * A caller waits for the answer to this message alone. The message becomes a turn of its own that no other input joins, and it
   * never answers a question of another turn. Omitted: false.
   */
  exclusive: z.boolean().optional(),
  /** With `exclusive`: what its caller requires of the answer. Omitted: nothing. */
  answer: AnswerRequirementsSchema.optional(),
});
export type InboundMessage = z.infer<typeof InboundMessageSchema>;
