// Session events for observers. Durable events carry `seq` and can be read again from the store. The others are a live view and may be
// lost: a consumer resynchronizes from the next durable event.
import { z } from "zod";
import { MessageSchema, UsageSchema } from "./messages.ts";
import { CostSchema, exitReasons, turnStates } from "./turns.ts";

const TurnFinishedEvent = z.object({
  type: z.literal("turn.finished"),
  seq: z.number().int(),
  turnId: z.string(),
  state: z.enum(turnStates),
  exitReason: z.enum(exitReasons),
  /** The answer, or the text sent to the user instead. */
  text: z.string(),
  usage: UsageSchema,
  cost: CostSchema,
  /** `cost` with that of the sub-agents that the turn started, so far. Omitted: they cost nothing, or older versions. */
  treeCost: CostSchema.optional(),
});
const CompactedEvent = z.object({
  type: z.literal("compacted"),
  seq: z.number().int(),
  turnId: z.string(),
  /** Cause: `share`, `tokens`, `turns`, `overflow`, `demand`, `idle` … */
  trigger: z.string(),
  /** Method: `summarize`, `clear_tool_results`, `trim`. */
  strategy: z.string(),
  tokensBefore: z.number().int(),
  tokensAfter: z.number().int(),
  /** The summary. Omitted: the compaction wrote none. */
  summary: z.string().optional(),
});
const RewoundEvent = z.object({
  type: z.literal("rewound"),
  seq: z.number().int(),
  /** The turn, or the earlier rewind, whose earlier state was restored. */
  turnId: z.string(),
  /** Its own checkpoint: rewinding to it undoes the rewind. */
  checkpointId: z.string(),
  /** Number of files by outcome: `restored`, `removed`, `skipped`, `failed`. */
  counts: z.record(z.string(), z.number().int()),
  /** The first paths that were restored or removed, relative to the session's workspace. */
  paths: z.array(z.string()),
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
  /** JSON text of the call's complete arguments. Omitted by older versions. */
  input: z.string().optional(),
  /** False: an approval covers this call only, also with "always". Omitted by older versions. */
  mayAlways: z.boolean().optional(),
});
const ApprovalDecidedEvent = z.object({
  type: z.literal("approval.decided"),
  ...approval,
  allowed: z.boolean(),
  by: z.string(),
  /** Why the person denied the call. Omitted: they gave no reason, or older versions. */
  message: z.string().optional(),
});
const QuestionAskedEvent = z.object({
  type: z.literal("question.asked"),
  seq: z.number().int(),
  turnId: z.string(),
  callId: z.string(),
  question: z.string(),
  /** Suggested answers; others are possible. */
  options: z.array(z.string()),
  /** ISO 8601, UTC. */
  expiresAt: z.string(),
});
const MessageEvent = z.object({
  type: z.literal("message"),
  seq: z.number().int(),
  message: MessageSchema,
  /** Of the model call that wrote the message; zero: the provider reported none. Omitted: no complete model call wrote it. */
  usage: UsageSchema.optional(),
});

/** An event of the session's log; also the row format of `store.event.list`. */
export const DurableEventSchema = z.discriminatedUnion("type", [
  MessageEvent,
  TurnFinishedEvent,
  CompactedEvent,
  RewoundEvent,
  ApprovalRequestedEvent,
  ApprovalDecidedEvent,
  QuestionAskedEvent,
]);
export type DurableEvent = z.infer<typeof DurableEventSchema>;

/** Progress of a tool call, as the tool reports it. */
export const ToolProgressSchema = z.object({
  /** Increases; the tool defines what it counts. */
  done: z.number(),
  /** Final value of `done`; null: unknown. */
  total: z.number().nullable(),
  /** Empty: the tool sent only figures. */
  message: z.string().max(500),
  /** The end of what a running command has printed so far. `done` then counts the characters. */
  output: z.string().max(4_000).optional(),
});
export type ToolProgress = z.infer<typeof ToolProgressSchema>;

const inTurn = { turnId: z.string() };
/** Characters (UTF-16) of this attempt before `text`, so that lost and repeated deltas are noticed. Omitted by older versions. */
const offset = z.number().int().nonnegative().optional();
const LiveEventSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("turn.started"), ...inTurn, inboxIds: z.array(z.string()), attempt: z.number().int() }),
  z.object({
    type: z.literal("text.delta"),
    ...inTurn,
    step: z.number().int(),
    /** Attempt number of this model call; text of a higher attempt replaces text of lower ones. */
    attempt: z.number().int(),
    text: z.string(),
    offset,
  }),
  z.object({
    type: z.literal("reasoning.delta"),
    ...inTurn,
    step: z.number().int(),
    attempt: z.number().int(),
    text: z.string(),
    offset,
  }),
  /** The arguments of a call while the model writes them; the committed message has the whole. Not every provider streams them. */
  z.object({
    type: z.literal("tool.input"),
    ...inTurn,
    step: z.number().int(),
    attempt: z.number().int(),
    callId: z.string(),
    tool: z.string(),
    /** A part of the JSON text. */
    text: z.string(),
    /** Characters (UTF-16) of this call's arguments before `text`. */
    offset: z.number().int().nonnegative(),
  }),
  z.object({
    type: z.literal("model.retry"),
    ...inTurn,
    step: z.number().int(),
    /** Of the attempt that follows. */
    attempt: z.number().int(),
    /** How often one model is tried. Omitted by older versions. */
    tries: z.number().int().optional(),
    delayMs: z.number(),
    reason: z.string(),
  }),
  /** Another model continues this turn. */
  z.object({ type: z.literal("model.failover"), ...inTurn, from: z.string(), to: z.string(), reason: z.string() }),
  /** The turn waits for a person or a sub-agent and holds no worker slot meanwhile. */
  z.object({ type: z.literal("turn.parked"), ...inTurn, waitingFor: z.array(z.string()) }),
  z.object({ type: z.literal("compaction.started"), ...inTurn, trigger: z.string() }),
  z.object({
    type: z.literal("subagent.started"),
    ...inTurn,
    callId: z.string(),
    sessionId: z.string(),
    profile: z.string(),
    mode: z.enum(["wait", "background"]),
    /** What the task is, at most 200 characters: the call's own description, or else the start of its prompt. Omitted by older versions. */
    description: z.string().optional(),
    /** Position of the sub-agent's log before this task. Omitted by older versions, and after a retry. */
    afterSeq: z.number().int().optional(),
  }),
  /** Information for a person that is not an answer: a hook's message, a limit that is close. */
  z.object({ type: z.literal("notice"), ...inTurn, text: z.string() }),
  z.object({
    type: z.literal("tool.started"),
    ...inTurn,
    callId: z.string(),
    tool: z.string(),
    /** JSON text of the arguments, truncated to 2,000 characters. */
    input: z.string(),
  }),
  /** At most one per second and call. */
  z.object({
    type: z.literal("tool.progress"),
    ...inTurn,
    callId: z.string(),
    tool: z.string(),
    progress: ToolProgressSchema,
  }),
  /** A rule, the mode, a hook, a person or an approval timeout denied the call. The model receives `reason`. */
  z.object({ type: z.literal("tool.denied"), ...inTurn, callId: z.string(), tool: z.string(), reason: z.string() }),
  z.object({
    type: z.literal("tool.finished"),
    ...inTurn,
    callId: z.string(),
    tool: z.string(),
    isError: z.boolean(),
    /** The result, truncated to 2,000 characters. */
    content: z.string(),
    durationMs: z.number(),
    /** The isolation the command ran under; omitted: no command ran. */
    isolation: z.string().optional(),
  }),
]);
export type LiveEvent = z.infer<typeof LiveEventSchema>;

export const SessionEventSchema = z.discriminatedUnion("type", [
  ...DurableEventSchema.options,
  ...LiveEventSchema.options,
]);
export type SessionEvent = z.infer<typeof SessionEventSchema>;
