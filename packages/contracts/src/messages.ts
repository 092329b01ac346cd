// Messages and their parts. Parts store provider content byte for byte: reasoning and signatures are never parsed, a tool call's input
// is the JSON text of the model, and unknown provider blocks are stored without being interpreted.
import { z } from "zod";
import { AnswerRequirementsSchema } from "./answer.ts";
import { AttachmentSchema } from "./attachments.ts";
import { approvalAnswerers, contactRoles, origins } from "./principals.ts";

export const TextPart = z.object({ type: z.literal("text"), text: z.string() });
const ReasoningPart = z.object({
  type: z.literal("reasoning"),
  text: z.string(),
  /** The provider's signature over the text and everything before it; returned unchanged. */
  signature: z.string().optional(),
  /** Encrypted reasoning that came without text (`redacted_thinking`). */
  redacted: z.string().optional(),
  /** The provider's item that contains it, as JSON; returned unchanged. */
  raw: z.string().optional(),
  /** The model that wrote it (`anthropic:claude-x`), if only that model accepts it back. */
  model: z.string().optional(),
});
const ToolCallPart = z.object({
  type: z.literal("tool_call"),
  id: z.string(),
  name: z.string(),
  /** JSON text, exactly as the model wrote it. */
  input: z.string(),
  /** The original call, where the model reached this tool through another tool: prompts contain it unchanged. */
  wrote: z.object({ name: z.string(), input: z.string() }).optional(),
});
export const ToolResultPart = z.object({
  type: z.literal("tool_result"),
  id: z.string(),
  name: z.string(),
  content: z.string(),
  isError: z.boolean(),
  /** The call was refused before it ran: Parley wrote the content. */
  refused: z.literal(true).optional(),
  /** Further content of the result: shown to models that support its media type. */
  attachments: z.array(AttachmentSchema).optional(),
  /** The content is, or may be, derived from untrusted content: the message that contains it is tainted. */
  untrusted: z.literal(true).optional(),
  /**
   * The store knows that the content derives from no untrusted content, so the effect `reads_untrusted` of the tool does not apply: the
   * report of a sub-agent whose turn was not tainted, or a notice that one was started. Only the store sets it.
   */
  untainted: z.literal(true).optional(),
  /** Files that the call sent to people: for readers of the session, not for the model. */
  sent: z.array(AttachmentSchema).optional(),
  /** Files that the call added to the session, as `attach` does: not shown to the model. */
  kept: z.array(AttachmentSchema).optional(),
  /** The isolation the command ran under, for readers of the session, not for the model. Omitted: no command ran. */
  isolation: z.string().max(40).optional(),
  /** How long the call ran, in milliseconds, for readers of the session, not for the model. Omitted: it did not run, or is not measured. */
  durationMs: z.number().int().nonnegative().optional(),
});
export const BinaryPart = z.object({
  type: z.literal("binary"),
  mediaType: z.string(),
  name: z.string().optional(),
  /** Base64. Small content only: the whole message must fit in the message limit. */
  data: z.string(),
});
/** Content that the store holds under its hash. */
export const BlobPart = AttachmentSchema.extend({ type: z.literal("blob") });
/** A file that is still on the platform: only in stored input that waits for it, never in a session's messages. */
export const PendingFilePart = z.object({
  type: z.literal("pending_file"),
  /** The name of a file without one: `photo`, `voice` … */
  kind: z.string().max(40),
  name: z.string().max(1_000).optional(),
  /** The size reported by the platform; null: unknown. */
  bytes: z.number().int().nonnegative().nullable(),
  /** What the channel's adapter needs to fetch it. Opaque to everything else, and no secret. */
  handle: z.string().min(1).max(2_048),
});
/** The message that a message replies to, or one that came before it; untrusted unless the agent or the sender of the message wrote it. */
export const QuotePart = z.object({
  type: z.literal("quote"),
  text: z.string(),
  /** The author's name as the platform shows it. Omitted: unknown. */
  author: z.string().max(200).optional(),
  ofAgent: z.boolean().optional(),
  ofSender: z.boolean().optional(),
  /** Somebody wrote it earlier in the group, without mentioning the agent. Omitted: the message replies to it. */
  earlier: z.boolean().optional(),
});
/** A content block of a provider that Parley stores and returns without understanding it. */
const ProviderPart = z.object({ type: z.literal("provider"), provider: z.string(), raw: z.string() });
const FinishPart = z.object({
  type: z.literal("finish"),
  /** The provider's stop reason, or `cancelled`. */
  reason: z.string(),
  /** The stop sequence that the model reached. Omitted: none, or the provider did not report which. */
  stopSequence: z.string().optional(),
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
  QuotePart,
  ProviderPart,
  FinishPart,
]);
export type Part = z.infer<typeof PartSchema>;
export type ToolCall = z.infer<typeof ToolCallPart>;
export type ToolResult = z.infer<typeof ToolResultPart>;

const messageRoles = ["user", "assistant", "tool"] as const;
export type MessageRole = (typeof messageRoles)[number];

/** A forwarded message: `from` is the name of the original author as the platform shows it; omitted: unknown. */
export const ForwardedSchema = z.object({ from: z.string().max(200).optional() });

/** Who sent a message, and where. */
export const SenderSchema = z.object({
  channel: z.string(),
  account: z.string(),
  conversation: z.string(),
  contact: z.object({ id: z.string(), name: z.string().optional() }),
  role: z.enum(contactRoles),
  origin: z.enum(origins),
  /** False in a group; omitted: a conversation with one person. */
  direct: z.boolean().optional(),
  /** The text is, or may be, derived from untrusted content. Omitted: `origin`, `role` and `forwarded` decide. */
  tainted: z.boolean().optional(),
  /** The sender forwarded the message; somebody else wrote it. */
  forwarded: ForwardedSchema.optional(),
  /** The text was recognized from speech of a voice session. */
  spoken: z.literal(true).optional(),
  /** Who can answer approval questions about the tool calls of its turn. Omitted: `sender`. */
  approvals: z.enum(approvalAnswerers).optional(),
  /** What the caller requires of the answer. Messages of the log leave it out. */
  answer: AnswerRequirementsSchema.optional(),
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
  /** Sender of a user message; omitted for messages that the loop itself adds. */
  from: SenderSchema.optional(),
  /**
   * The content is, or may be, derived from untrusted content; once set it is never cleared. Omitted: the sender, the parts and the
   * effects of the tools decide (older messages, and messages without untrusted content).
   */
  tainted: z.boolean().optional(),
  /** When the sender sent it, by the platform's clock. Omitted: the platform reported none. ISO 8601, UTC. */
  sentAt: z.string().optional(),
  /** ISO 8601, UTC. */
  createdAt: z.string(),
});
export type Message = z.infer<typeof MessageSchema>;

export const UsageSchema = z.object({
  inputTokens: z.number().int().nonnegative(),
  outputTokens: z.number().int().nonnegative(),
  cacheReadTokens: z.number().int().nonnegative(),
  cacheWriteTokens: z.number().int().nonnegative(),
  /** The part of `cacheWriteTokens` that is cached for one hour; the rest is cached for five minutes. */
  cacheWrite1hTokens: z.number().int().nonnegative().optional(),
  /** The part of `outputTokens` that was reasoning. */
  reasoningTokens: z.number().int().nonnegative().optional(),
});
export type Usage = z.infer<typeof UsageSchema>;
export const noUsage: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** The text parts, joined by blank lines. */
export function textOf(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.type === "text" && part.text !== "" ? [part.text] : [])).join("\n\n");
}

/** Whether input is untrusted because of its sender or parts: from a guest or webhook, forwarded, quoting others, or with a file not sent by the owner. */
export function isUntrustedInput(from: Sender, parts: readonly Part[]): boolean {
  return (
    from.tainted === true ||
    from.forwarded !== undefined ||
    from.role === "guest" ||
    from.origin === "webhook" ||
    parts.some((part) => part.type === "quote" && part.ofAgent !== true && part.ofSender !== true) ||
    // The owner is responsible for the files they send; other people forward files they did not write.
    (from.role !== "owner" && parts.some((part) => part.type === "blob"))
  );
}
