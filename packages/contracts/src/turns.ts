// Turns and steps: the durable state machine of one run of the loop.
//
//   turn   running ─→ done | failed | cancelled | dead
//   step   intended ─→ running ─→ done | failed | cancelled | unknown        (tools of class `once` and `idempotent`)
//          intended ─→ done | failed | cancelled                              (tools of class `pure`, never claimed)
import { z } from "zod";
import { MessageSchema, ToolResultPart, UsageSchema } from "./messages.ts";
import { ReplyAddressSchema } from "./inbound.ts";

export const turnStates = ["running", "done", "failed", "cancelled", "dead"] as const;
export type TurnState = (typeof turnStates)[number];

export const exitReasons = [
  "end_turn",
  "max_turns",
  "max_budget",
  "max_tokens",
  "stop_sequence",
  "refusal",
  "interrupted",
  "aborted",
  "error",
] as const;
export type ExitReason = (typeof exitReasons)[number];

const stepStates = ["intended", "running", "done", "failed", "cancelled", "unknown"] as const;
export type StepState = (typeof stepStates)[number];

/** What may be done with a tool call after a crash. `pure`: rerun. `idempotent`: rerun with the same key. `once`: never rerun. */
export const toolClasses = ["pure", "idempotent", "once"] as const;
export type ToolClass = (typeof toolClasses)[number];

export const ToolStepSchema = z.object({
  turnId: z.string(),
  /** Position among the turn's steps. */
  n: z.number().int(),
  callId: z.string(),
  tool: z.string(),
  class: z.enum(toolClasses),
  state: z.enum(stepStates),
  /** JSON text. */
  input: z.string(),
  /** Present in every final state. */
  result: ToolResultPart.nullable(),
  /** The tool-runner replica that claimed it. */
  runner: z.string().nullable(),
  startedAt: z.string().nullable(),
});
export type ToolStep = z.infer<typeof ToolStepSchema>;

/** What agent-core needs to run or resume a turn. */
export const ClaimedTurnSchema = z.object({
  turnId: z.string(),
  sessionId: z.string(),
  sessionKey: z.string(),
  replyTo: ReplyAddressSchema.nullable(),
  inboxIds: z.array(z.string()),
  /** How often this turn has been claimed, this one included. */
  attempt: z.number().int(),
  /** The next free step number. */
  nextStep: z.number().int(),
  /** Model calls already committed. */
  modelSteps: z.number().int(),
  /** Tool steps whose results are not yet in a message, in call order. */
  openSteps: z.array(ToolStepSchema),
  cancelRequested: z.boolean(),
  startedAt: z.string(),
});
export type ClaimedTurn = z.infer<typeof ClaimedTurnSchema>;

export const TurnSummarySchema = z.object({
  turnId: z.string(),
  sessionId: z.string(),
  state: z.enum(turnStates),
  exitReason: z.enum(exitReasons).nullable(),
  /** The answer, once the turn has ended. */
  text: z.string().nullable(),
  usage: UsageSchema,
  modelSteps: z.number().int(),
  attempts: z.number().int(),
  startedAt: z.string(),
  finishedAt: z.string().nullable(),
});
export type TurnSummary = z.infer<typeof TurnSummarySchema>;

export const SessionSummarySchema = z.object({
  sessionId: z.string(),
  key: z.string(),
  /** The last number given in this session's log. */
  seq: z.number().int(),
  messageCount: z.number().int(),
  usage: UsageSchema,
  queued: z.number().int(),
  runningTurnId: z.string().nullable(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
export type SessionSummary = z.infer<typeof SessionSummarySchema>;

export const HistorySchema = z.object({
  messages: z.array(MessageSchema),
  /** There are more in the direction that was read. */
  more: z.boolean(),
});
