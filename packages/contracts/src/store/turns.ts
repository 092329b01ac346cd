// Turns and steps: claimed, committed, ended. Writes of agent-core carry `epoch` and are refused with STALE_EPOCH when another
// agent-core leads.
import { z } from "zod";
import { request } from "../contract.ts";
import { DurableEventSchema } from "../events.ts";
import { MessageSchema, PartSchema, ToolResultPart, UsageSchema } from "../messages.ts";
import {
  ClaimedTurnSchema,
  exitReasons,
  toolClasses,
  ToolStepSchema,
  turnStates,
  TurnSummarySchema,
} from "../turns.ts";
import { Fenced, OutgoingSchema } from "./shared.ts";

export const FinishSchema = z.object({
  state: z.enum(turnStates).exclude(["running"]),
  exitReason: z.enum(exitReasons),
  /** The answer, or what the user is told instead. Never empty. */
  text: z.string().min(1),
});
export type Finish = z.infer<typeof FinishSchema>;

export const turnClaim = request({
  subject: "store.turn.claim",
  server: "store",
  clients: ["agent-core"],
  doc: "Take the session's next work: its running turn (resumed), else the first queued row by priority and order, which becomes a turn and a user message. `dead`: the turn was claimed too often and has been ended with a notice. History comes with it: what is newer than `knownSeq`, at most the newest that fit one reply.",
  input: z.object({ ...Fenced, sessionId: z.string(), knownSeq: z.number().int(), maxClaims: z.number().int() }),
  output: z.discriminatedUnion("status", [
    z.object({ status: z.literal("empty") }),
    z.object({ status: z.literal("dead"), finished: z.array(DurableEventSchema) }),
    z.object({
      status: z.enum(["started", "resumed"]),
      turn: ClaimedTurnSchema,
      messages: z.array(MessageSchema),
      /** Older messages after `knownSeq` were left out: read them backwards with `store.session.messages`. */
      gap: z.boolean(),
    }),
  ]),
});

export const stepCommit = request({
  subject: "store.step.commit",
  server: "store",
  clients: ["agent-core"],
  doc: "Commit one model call whole: the tool results before it (taken from their settled steps), its message, its usage, the tool calls it asks for, what goes out, and the end of the turn where it is the closing step.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    /** Step number of the model call. */
    n: z.number().int(),
    model: z.string(),
    stopReason: z.string(),
    usage: UsageSchema,
    parts: z.array(PartSchema),
    /** How many tool results the leader has seen since the last message; CONFLICT when the store counts otherwise. */
    results: z.number().int().nonnegative(),
    /** Numbered n+1, n+2 … in call order. */
    toolCalls: z.array(
      z.object({ callId: z.string(), tool: z.string(), class: z.enum(toolClasses), input: z.string() }),
    ),
    outgoing: z.array(OutgoingSchema),
    finish: FinishSchema.nullable(),
  }),
  output: z.object({
    /** Position of the message that holds the tool results before this call; null when there were none. */
    resultsSeq: z.number().int().nullable(),
    messageSeq: z.number().int(),
    /** Position of `turn.finished`; null while the turn goes on. */
    finishSeq: z.number().int().nullable(),
    /** Of the whole turn so far. */
    usage: UsageSchema,
    /** With the end of the turn: something waits behind it in the session. */
    queued: z.boolean(),
    /** The user has asked to stop this turn. */
    cancelRequested: z.boolean(),
    /** ISO 8601, UTC: the time of all three. */
    at: z.string(),
  }),
});

export const turnFinish = request({
  subject: "store.turn.finish",
  server: "store",
  clients: ["agent-core"],
  doc: "End a turn without a further model call: cancelled, failed, a limit. Open tool calls that have no result get `unsettled` as theirs; `parts` (what was already shown of a cut answer) becomes a message if not empty.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    parts: z.array(PartSchema),
    model: z.string().nullable(),
    /** Said to the model about each open call. */
    unsettled: z.string(),
    outgoing: z.array(OutgoingSchema),
    finish: FinishSchema,
  }),
  output: z.object({
    /** What was appended, in order: results of open tool calls, the cut answer, the end of the turn. */
    events: z.array(DurableEventSchema),
    /** Something waits behind the turn in the session. */
    queued: z.boolean(),
  }),
});

export const turnCancel = request({
  subject: "store.turn.cancel",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Remember that the session's running turn shall stop, and, with `queued`, take back what waits behind it. The leader is told at once by `agent.control.cancel`; this makes it survive the leader.",
  input: z.object({ sessionId: z.string(), turnId: z.string().optional(), queued: z.boolean() }),
  output: z.object({ turnId: z.string().nullable(), cancelledQueued: z.number().int() }),
});

export const turnGet = request({
  subject: "store.turn.get",
  server: "store",
  clients: ["channel-gateway", "agent-core"],
  doc: "One turn and its newest tool steps, as many as fit one reply; with `n` that step alone.",
  input: z.object({ turnId: z.string(), n: z.number().int().optional() }),
  output: z.object({ turn: TurnSummarySchema, steps: z.array(ToolStepSchema), cancelRequested: z.boolean() }),
});

export const stepClaim = request({
  subject: "store.step.claim",
  server: "store",
  clients: ["tool-runner"],
  doc: "`intended → running`, before a tool of class `once` or `idempotent` starts. Not granted when the step is settled, or running and of class `once`; `step` says how it stands.",
  input: z.object({ ...Fenced, turnId: z.string(), n: z.number().int(), runner: z.string() }),
  output: z.object({ granted: z.boolean(), step: ToolStepSchema }),
});

export const stepSettle = request({
  subject: "store.step.settle",
  server: "store",
  clients: ["tool-runner", "agent-core"],
  doc: "Give a tool step its final state and result. The first settlement wins; the reply carries the one that counts.",
  input: z.object({
    opId: z.uuid(),
    /** The leader's epoch. Null from a tool-runner: what was done is done, whoever leads now. */
    epoch: z.number().int().nullable(),
    turnId: z.string(),
    n: z.number().int(),
    state: z.enum(["done", "failed", "cancelled", "unknown"]),
    result: ToolResultPart,
  }),
  output: z.object({ step: ToolStepSchema }),
});
