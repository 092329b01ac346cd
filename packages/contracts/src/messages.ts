// What a conversation is made of. Parts keep provider content byte for byte: reasoning and its signature are strings that
// are never parsed, a tool call's input is the JSON text the model produced, unknown provider blocks ride along unread.
import { z } from "zod";
import { AttachmentSchema } from "./attachments.ts";
import { approvalAnswerers, contactRoles, origins } from "./people.ts";

export const TextPart = z.object({ type: z.literal("text"), text: z.string() });
const ReasoningPart = z.object({
  type: z.literal("reasoning"),
  text: z.string(),
  /** The provider's signature over the text and everything before it; sent back exactly. */
  signature: z.string().optional(),
  /** Encrypted reasoning that came without text (`redacted_thinking`). */
  redacted: z.string().optional(),
  /** The model that wrote it (`anthropic:claude-x`), where only that one may have it back. */
  model: z.string().optional(),
});
const ToolCallPart = z.object({
  type: z.literal("tool_call"),
  id: z.string(),
  name: z.string(),
  /** JSON text, exactly as the model wrote it. */
  input: z.string(),
  /** The call as it was written, where the model reached this tool by way of another: the model gets it back exactly so. */
  wrote: z.object({ name: z.string(), input: z.string() }).optional(),
});
export const ToolResultPart = z.object({
  type: z.literal("tool_result"),
  id: z.string(),
  name: z.string(),
  content: z.string(),
  isError: z.boolean(),
  /** The call was refused before it ran: the content is in our own words. */
  refused: z.literal(true).optional(),
  /** Content the result consists of beside its text: shown to a model that can see it. */
  attachments: z.array(AttachmentSchema).optional(),
  /** The content is, or may be, derived from untrusted content: the message that contains it is tainted. */
  untrusted: z.literal(true).optional(),
  /** What the call has sent to people: for those who read the session, not for the model. */
  sent: z.array(AttachmentSchema).optional(),
  /** Content that the call has kept for the session, as `attach` does: not shown to the model. */
  kept: z.array(AttachmentSchema).optional(),
  /** What stood between the command and the machine, in a word: for those who read the session, not for the model. Left out: no command ran. */
  isolation: z.string().max(40).optional(),
});
export const BinaryPart = z.object({
  type: z.literal("binary"),
  mediaType: z.string(),
  name: z.string().optional(),
  /** Base64. Small content only: the whole message stays under the message cap. */
  data: z.string(),
});
/** Content that the store keeps under its hash. */
export const BlobPart = AttachmentSchema.extend({ type: z.literal("blob") });
/** A content block of a provider that Parley stores and returns without understanding it. */
const ProviderPart = z.object({ type: z.literal("provider"), provider: z.string(), raw: z.string() });
const FinishPart = z.object({
  type: z.literal("finish"),
  /** The provider's stop reason, or `cancelled`. */
  reason: z.string(),
  /** ISO 8601, UTC. */
  at: z.string(),
});

export const PartSchema = z.discriminatedUnion("type", [
  TextPart,
  ReasoningPart,
  ToolCallPart,
  ToolResultPart,
  BinaryPart,
  BlobPart,
  ProviderPart,
  FinishPart,
]);
export type Part = z.infer<typeof PartSchema>;
export type ToolCall = z.infer<typeof ToolCallPart>;
export type ToolResult = z.infer<typeof ToolResultPart>;

const messageRoles = ["user", "assistant", "tool"] as const;
export type MessageRole = (typeof messageRoles)[number];

/** A forwarded message: `from` is the name of the original author as the platform shows it; left out: unknown. */
export const ForwardedSchema = z.object({ from: z.string().max(200).optional() });

/** Who said a message, and where. */
export const SenderSchema = z.object({
  channel: z.string(),
  account: z.string(),
  conversation: z.string(),
  contact: z.object({ id: z.string(), name: z.string().optional() }),
  role: z.enum(contactRoles),
  origin: z.enum(origins),
  /** False in a group; left out: a conversation with one person. */
  direct: z.boolean().optional(),
  /** The text is, or may be, derived from untrusted content. Left out: `origin`, `role` and `forwarded` decide. */
  tainted: z.boolean().optional(),
  /** The sender forwarded it; somebody else wrote it. */
  forwarded: ForwardedSchema.optional(),
  /** Who can answer approval questions about the tool calls of its turn. Left out: `sender`. */
  approvals: z.enum(approvalAnswerers).optional(),
});
export type Sender = z.infer<typeof SenderSchema>;

export const MessageSchema = z.object({
  /** Position in the session's log; messages and durable events share one counter. */
  seq: z.number().int(),
  role: z.enum(messageRoles),
  turnId: z.string(),
  parts: z.array(PartSchema),
  /** The model that wrote an assistant message. */
  model: z.string().nullable(),
  /** Of a user message; left out where the loop itself speaks. */
  from: SenderSchema.optional(),
  /**
   * The content is, or may be, derived from untrusted content; once set it is never cleared. Left out: the sender, the parts and the
   * effects of the tools decide (older messages, and messages without untrusted content).
   */
  tainted: z.boolean().optional(),
  /** ISO 8601, UTC. */
  createdAt: z.string(),
});
export type Message = z.infer<typeof MessageSchema>;

export const UsageSchema = z.object({
  inputTokens: z.number().int().nonnegative(),
  outputTokens: z.number().int().nonnegative(),
  cacheReadTokens: z.number().int().nonnegative(),
  cacheWriteTokens: z.number().int().nonnegative(),
  /** Of `cacheWriteTokens`, those kept for an hour; the rest is kept for five minutes. */
  cacheWrite1hTokens: z.number().int().nonnegative().optional(),
  /** Of `outputTokens`, those the model thought with. */
  reasoningTokens: z.number().int().nonnegative().optional(),
});
export type Usage = z.infer<typeof UsageSchema>;
export const noUsage: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** The text a person reads in a list of parts: its text parts, joined by a blank line. */
export function textOf(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.type === "text" && part.text !== "" ? [part.text] : [])).join("\n\n");
}

/** Whether input is untrusted by its sender and its files: a guest's, a webhook's, a forwarded one, a file that not the owner sent. */
export function isUntrustedInput(from: Sender, parts: readonly Part[]): boolean {
  return (
    from.tainted === true ||
    from.forwarded !== undefined ||
    from.role === "guest" ||
    from.origin === "webhook" ||
    // The owner is responsible for the files they send; other people forward files they did not write.
    (from.role !== "owner" && parts.some((part) => part.type === "blob"))
  );
}
