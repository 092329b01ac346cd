// What happens in a session, for people who watch. Durable events carry `seq` and can be read again from the store; the
// others are a live view that may be lost: a consumer repairs itself from the next durable event.
import { z } from "zod";
import { MessageSchema, UsageSchema } from "./messages.ts";
import { CostSchema, exitReasons, turnStates } from "./turns.ts";

const TurnFinishedEvent = z.object({
  type: z.literal("turn.finished"),
  seq: z.number().int(),
  turnId: z.string(),
  state: z.enum(turnStates),
  exitReason: z.enum(exitReasons),
  /** The answer, or what the user is told instead. */
  text: z.string(),
  usage: UsageSchema,
  cost: CostSchema,
});
const CompactedEvent = z.object({
  type: z.literal("compacted"),
  seq: z.number().int(),
  turnId: z.string(),
  /** Why: `share`, `tokens`, `turns`, `overflow`, `demand`, `idle` … */
  trigger: z.string(),
  /** What was done: `summarize`, `clear_tool_results`, `trim`. */
  strategy: z.string(),
  tokensBefore: z.number().int(),
  tokensAfter: z.number().int(),
});
const approval = {
  seq: z.number().int(),
  turnId: z.string(),
  approvalId: z.string(),
  callId: z.string(),
  tool: z.string(),
};
const ApprovalRequestedEvent = z.object({
  type: z.literal("approval.requested"),
  ...approval,
  summary: z.string(),
  reason: z.string(),
  /** ISO 8601, UTC. */
  expiresAt: z.string(),
  /** JSON text of the call's arguments, whole. Left out by older versions. */
  input: z.string().optional(),
});
const ApprovalDecidedEvent = z.object({
  type: z.literal("approval.decided"),
  ...approval,
  allowed: z.boolean(),
  by: z.string(),
});
const QuestionAskedEvent = z.object({
  type: z.literal("question.asked"),
  seq: z.number().int(),
  turnId: z.string(),
  callId: z.string(),
  question: z.string(),
  /** Answers that are offered; others are possible. */
  options: z.array(z.string()),
  /** ISO 8601, UTC. */
  expiresAt: z.string(),
});
const MessageEvent = z.object({ type: z.literal("message"), seq: z.number().int(), message: MessageSchema });

/** An event of the session's log; also the row format of `store.event.list`. */
export const DurableEventSchema = z.discriminatedUnion("type", [
  MessageEvent,
  TurnFinishedEvent,
  CompactedEvent,
  ApprovalRequestedEvent,
  ApprovalDecidedEvent,
  QuestionAskedEvent,
]);
export type DurableEvent = z.infer<typeof DurableEventSchema>;

/** How far a tool has come, as it says itself. */
export const ToolProgressSchema = z.object({
  /** Grows; what it counts is the tool's affair. */
  done: z.number(),
  /** What `done` will be at the end; null: not known. */
  total: z.number().nullable(),
  /** Empty: the tool says nothing beside the figures. */
  message: z.string().max(500),
});
export type ToolProgress = z.infer<typeof ToolProgressSchema>;

const inTurn = { turnId: z.string() };
const LiveEventSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("turn.started"), ...inTurn, inboxIds: z.array(z.string()), attempt: z.number().int() }),
  z.object({
    type: z.literal("text.delta"),
    ...inTurn,
    step: z.number().int(),
    /** Tries of this model call; a higher one replaces what lower ones showed. */
    attempt: z.number().int(),
    text: z.string(),
  }),
  z.object({
    type: z.literal("reasoning.delta"),
    ...inTurn,
    step: z.number().int(),
    attempt: z.number().int(),
    text: z.string(),
  }),
  z.object({
    type: z.literal("model.retry"),
    ...inTurn,
    step: z.number().int(),
    attempt: z.number().int(),
    delayMs: z.number(),
    reason: z.string(),
  }),
  /** Another model goes on with this turn. */
  z.object({ type: z.literal("model.failover"), ...inTurn, from: z.string(), to: z.string(), reason: z.string() }),
  /** The turn waits for somebody else and holds nothing meanwhile. */
  z.object({ type: z.literal("turn.parked"), ...inTurn, waitingFor: z.array(z.string()) }),
  z.object({ type: z.literal("compaction.started"), ...inTurn, trigger: z.string() }),
  z.object({
    type: z.literal("subagent.started"),
    ...inTurn,
    callId: z.string(),
    sessionId: z.string(),
    profile: z.string(),
    mode: z.enum(["wait", "background"]),
  }),
  /** Something a person should know that is no answer: a hook's words, a limit that is near. */
  z.object({ type: z.literal("notice"), ...inTurn, text: z.string() }),
  z.object({
    type: z.literal("tool.started"),
    ...inTurn,
    callId: z.string(),
    tool: z.string(),
    /** JSON text of the arguments, cut at 2,000 characters. */
    input: z.string(),
  }),
  /** At most one a second of each call. */
  z.object({
    type: z.literal("tool.progress"),
    ...inTurn,
    callId: z.string(),
    tool: z.string(),
    progress: ToolProgressSchema,
  }),
  /** A call was not let through: by a rule, the mode, a hook, a person or nobody's answer. The model is told `reason`. */
  z.object({ type: z.literal("tool.denied"), ...inTurn, callId: z.string(), tool: z.string(), reason: z.string() }),
  z.object({
    type: z.literal("tool.finished"),
    ...inTurn,
    callId: z.string(),
    tool: z.string(),
    isError: z.boolean(),
    /** The result, cut at 2,000 characters. */
    content: z.string(),
    durationMs: z.number(),
    /** What stood between the command and the machine; left out: no command ran. */
    isolation: z.string().optional(),
  }),
]);
export type LiveEvent = z.infer<typeof LiveEventSchema>;

export const SessionEventSchema = z.discriminatedUnion("type", [
  ...DurableEventSchema.options,
  ...LiveEventSchema.options,
]);
export type SessionEvent = z.infer<typeof SessionEventSchema>;
