// Requests that claim, continue and end turns, and commit and settle their steps. Writes of agent-core contain `epoch` and are refused with
// STALE_EPOCH when another replica has become the leader.
import { z } from "zod";
import { DurableEventSchema } from "../events.ts";
import { TrustLevelSchema } from "../principals.ts";
import { MessageSchema, PartSchema, ToolResultPart, UsageSchema } from "../messages.ts";
import {
  ClaimedTurnSchema,
  CostSchema,
  exitReasons,
  HookOutcomeSchema,
  SessionOverridesSchema,
  SessionStateSchema,
  taskModes,
  toolClasses,
  ToolStepSchema,
  turnStates,
  TurnSummarySchema,
} from "../turns.ts";
import { ReplyAddressSchema } from "../inbound.ts";
import { queueOrders } from "../settings/queue.ts";
import { Fenced, optionalOpId, OutgoingSchema, storeRequest } from "./shared.ts";
import { CallTimingSchema, RequestRecordSchema } from "./trace.ts";

export const FinishSchema = z.object({
  state: z.enum(turnStates).exclude(["running"]),
  exitReason: z.enum(exitReasons),
  /** The answer, or the text sent to the user instead. Empty only if the caller's limits on the answer remove all of it. */
  text: z.string(),
});
export type Finish = z.infer<typeof FinishSchema>;

/** Results that a hook rewrote after they were settled; the conversation contains the rewritten form. */
const Rewritten = z.array(z.object({ n: z.number().int(), result: ToolResultPart }));

/** Small results of `pure` calls that no runner has settled. They replace results of earlier attempts: the model received these. */
const InlineSettlement = z.array(
  z.object({ n: z.number().int(), state: z.enum(["done", "failed"]), result: ToolResultPart }),
);
export type InlineSettlement = z.infer<typeof InlineSettlement>;

/** Whether the turn is tainted: the messages that this request writes are then marked, except people's input. Omitted: it is not. */
const Tainted = z.boolean().optional();

export const turnClaim = storeRequest({
  subject: "store.turn.claim",
  clients: ["agent-core"],
  doc: "Claim the session's next work: its running turn (resumed), otherwise the first queued row by `order`, which becomes a turn and a user message. `dead`: the turn was claimed too often and was ended with a notice. The reply contains the history after `knownSeq`, at most the newest messages that fit. Rows whose batch window has not passed and parked turns do not count as work (`empty`).",
  input: z.object({
    ...Fenced,
    sessionId: z.string(),
    knownSeq: z.number().int(),
    maxClaims: z.number().int(),
    /** The text that replaces those results of a dead turn that no model has received; omitted: they stay. */
    withhold: z.string().min(1).optional(),
    /** The order of queued rows; omitted: `priority`. */
    order: z.enum(queueOrders).optional(),
    /** Also return what the session had used before (`turn.earlier`); omitted: no. */
    withEarlier: z.boolean().optional(),
    /** Priority ageing: after every so many seconds of waiting a row rises by one priority level; omitted: 300. */
    ageingSeconds: z.number().int().positive().optional(),
  }),
  output: z.discriminatedUnion("status", [
    z.object({ status: z.literal("empty") }),
    z.object({ status: z.literal("dead"), finished: z.array(DurableEventSchema) }),
    z.object({
      status: z.enum(["started", "resumed"]),
      turn: ClaimedTurnSchema,
      session: SessionStateSchema,
      /** Queued input may join this turn. */
      steerable: z.boolean(),
      messages: z.array(MessageSchema),
      /** Older messages after `knownSeq` are missing: read them backwards with `store.session.messages`. */
      gap: z.boolean(),
    }),
  ]),
});

export const stepCommit = storeRequest({
  subject: "store.step.commit",
  clients: ["agent-core"],
  doc: "Commit one model call atomically: the tool results before it (from their settled steps, or settled here), its message, its usage, its tool calls, outgoing texts, and the end of the turn if it is the closing step.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    /** Step number of the model call. */
    n: z.number().int(),
    model: z.string(),
    stopReason: z.string(),
    usage: UsageSchema,
    /** Millionths of a US dollar; omitted: unknown price. */
    costMicros: z.number().int().nonnegative().optional(),
    /** Omitted: unknown. */
    timing: CallTimingSchema.optional(),
    /** Omitted by leaders of older versions. */
    request: RequestRecordSchema.optional(),
    parts: z.array(PartSchema),
    /** How many tool results the leader has seen since the last message; CONFLICT when the store's count differs. */
    results: z.number().int().nonnegative(),
    rewritten: Rewritten.optional(),
    settled: InlineSettlement.optional(),
    tainted: Tainted,
    /** Numbered n+1, n+2 … in call order. */
    toolCalls: z.array(
      z.object({ callId: z.string(), tool: z.string(), class: z.enum(toolClasses), input: z.string() }),
    ),
    outgoing: z.array(OutgoingSchema),
    /** A message that the loop adds as a user message after the answer, for example the text of a Stop hook. Only without tool calls and `finish`. */
    note: z.array(PartSchema).min(1).optional(),
    /** The session's new prefix, stored by `store.prefix.put`; omitted: unchanged. */
    prefixHash: z.string().optional(),
    finish: FinishSchema.nullable(),
  }),
  output: z.object({
    /** Position of the message with the tool results before this call; null when there were none. */
    resultsSeq: z.number().int().nullable(),
    messageSeq: z.number().int(),
    noteSeq: z.number().int().nullable(),
    /** Position of `turn.finished`; null while the turn continues. */
    finishSeq: z.number().int().nullable(),
    /** Totals of the whole turn so far. */
    usage: UsageSchema,
    cost: CostSchema,
    /** At the end of the turn: whether the session has more queued input. */
    queued: z.boolean(),
    /** Queued input may join this turn. */
    steerable: z.boolean(),
    /** The current overrides: a person's change applies from the next call. */
    overrides: SessionOverridesSchema,
    /** The user has requested to stop this turn. */
    cancelRequested: z.boolean(),
    /** ISO 8601, UTC: the time of every message and event of this commit. */
    at: z.string(),
  }),
});

export const turnAppend = storeRequest({
  subject: "store.turn.append",
  clients: ["agent-core"],
  doc: "Append to a running turn's conversation between two model calls, in this order: the results of its open calls, the loop's notes, and, with `absorb`, queued input that may join the turn, unless a person stopped the turn. With `skipped`, calls that were not started first get that text as their result.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    /** As in `store.step.commit`, skipped calls not counted. */
    results: z.number().int().nonnegative(),
    rewritten: Rewritten.optional(),
    settled: InlineSettlement.optional(),
    tainted: Tainted,
    /** The result of each call that was not started; null: all calls must have been started. */
    skipped: z.string().nullable(),
    notes: z.array(z.array(PartSchema)),
    absorb: z.boolean(),
  }),
  output: z.object({
    /** The appended events, in order. */
    events: z.array(DurableEventSchema),
    inboxIds: z.array(z.string()),
    /** Further conversations that receive the answer, because their input joined the turn. */
    alsoTo: z.array(ReplyAddressSchema),
  }),
});

export const turnPark = storeRequest({
  subject: "store.turn.park",
  clients: ["agent-core"],
  doc: "Park a turn that waits for a person or a sub-agent. The turn is not parked (`parked: false`) when the awaited event has already happened: a result exists, an approval is decided, or the user stopped the turn. The transaction that records the awaited event makes the turn claimable again.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    /** Steps whose result or decision the turn waits for. */
    waitingFor: z.array(z.number().int()).min(1),
    /** ISO 8601, UTC: when the turn continues even if none of these has happened; null: never. */
    wakeAt: z.string().nullable(),
    settled: InlineSettlement.optional(),
  }),
  output: z.object({ parked: z.boolean() }),
});

export const turnSpawn = storeRequest({
  subject: "store.turn.spawn",
  clients: ["agent-core"],
  doc: "Start a sub-agent for a tool step: its session and its first input, in one commit, once per step. `wait`: the step runs until the child's turn ends; the child's text is its result. `background`: the step is settled immediately with the child's session, and the child's result arrives in the parent's session as input.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    n: z.number().int(),
    mode: z.enum(taskModes),
    profile: z.string(),
    /** The SDK program that runs the parent's session defines the profile. Omitted: the settings do. */
    ofProgram: z.boolean().optional(),
    title: z.string(),
    /** The task, as the parent wrote it. */
    parts: z.array(PartSchema),
    /** The turn and therefore the task are tainted. Omitted: they are not. */
    tainted: z.boolean().optional(),
    /** Maximum number of children of this session that run at the same time. */
    maxChildren: z.number().int().positive(),
    /** An existing child session to continue; null: start a new one. */
    resume: z.string().nullable(),
    /** Without `resume`: continue the newest idle child with this profile, if there is one. Omitted: false. */
    reuse: z.boolean().optional(),
    /** How the background result is queued: whether it may join a running turn. */
    announce: z.enum(["steer", "queue"]),
  }),
  output: z.discriminatedUnion("status", [
    z.object({
      status: z.literal("started"),
      sessionId: z.string(),
      step: ToolStepSchema,
      /** Position of the child's log before the task; omitted: a retry found the sub-agent already started. */
      afterSeq: z.number().int().optional(),
    }),
    /** Too many children run, there is no such child to resume, or the program that defined the profile has ended; the step is unchanged. */
    z.object({ status: z.literal("refused"), reason: z.string() }),
  ]),
});

export const turnFinish = storeRequest({
  subject: "store.turn.finish",
  clients: ["agent-core"],
  doc: "End a turn without a further model call: cancelled, failed, or limited. Open tool calls without a result get `unsettled` as result; `parts` (the streamed part of an aborted answer) becomes a message if not empty.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    parts: z.array(PartSchema),
    model: z.string().nullable(),
    /** The prefix under which `parts` were generated, as in `store.step.commit`; omitted: unchanged. */
    prefixHash: z.string().optional(),
    rewritten: Rewritten.optional(),
    settled: InlineSettlement.optional(),
    tainted: Tainted,
    /** Replaces the results of these steps, if they have one. */
    withhold: z.object({ steps: z.array(z.number().int()).min(1), text: z.string().min(1) }).optional(),
    /** The result of each open call, for the model. */
    unsettled: z.string(),
    outgoing: z.array(OutgoingSchema),
    finish: FinishSchema,
  }),
  output: z.object({
    /** The appended events, in order: results of open tool calls, the aborted answer, the end of the turn. */
    events: z.array(DurableEventSchema),
    /** The session has more queued input. */
    queued: z.boolean(),
  }),
});

/** The person whose turns and input are stopped. */
const StartedBySchema = z.object({
  /** Their current trust level. */
  trust: TrustLevelSchema,
  /** Omitted: the conversation has one person, so all input of this trust level is theirs. */
  sender: z.object({ channel: z.string(), account: z.string(), contactId: z.string() }).optional(),
});

export const turnCancel = storeRequest({
  subject: "store.turn.cancel",
  clients: ["channel-gateway"],
  doc: "Record that the session's running turn must stop, with the sub-agents it waits for. `queued` also cancels the queued input. `startedBy` restricts both to turns and messages of that person. `background` includes sub-agents that the turn does not wait for. The caller also sends `agent.control.cancel` for each of `turns`; this record survives a leader change.",
  input: z.object({
    opId: optionalOpId,
    sessionId: z.string(),
    turnId: z.string().optional(),
    queued: z.boolean(),
    background: z.boolean().optional(),
    /** Omitted: everyone's. A turn of another trust level, or one that another sender's message started, is not stopped. */
    startedBy: StartedBySchema.optional(),
  }),
  output: z.object({
    turnId: z.string().nullable(),
    cancelledQueued: z.number().int(),
    /** Every running turn that must stop. */
    turns: z.array(z.object({ sessionId: z.string(), turnId: z.string() })),
  }),
});

export const turnGet = storeRequest({
  subject: "store.turn.get",
  clients: ["channel-gateway", "agent-core"],
  doc: "Get one turn and its newest tool steps, as many as fit in one reply; with `n` only that step.",
  input: z.object({ turnId: z.string(), n: z.number().int().optional() }),
  output: z.object({ turn: TurnSummarySchema, steps: z.array(ToolStepSchema), cancelRequested: z.boolean() }),
});

export const stepSettle = storeRequest({
  subject: "store.step.settle",
  clients: ["agent-core"],
  doc: "Set the final state and result of a tool step on behalf of the leader. The first settlement wins; the reply contains it.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    n: z.number().int(),
    state: z.enum(["done", "failed", "cancelled", "unknown"]),
    result: ToolResultPart,
    /** Texts that this step sends: put into the outbox in the same commit, if this settlement wins. */
    outgoing: z.array(OutgoingSchema).optional(),
    /** The outcome of the hooks on the result, stored with the step; `result` then replaces the settled result. */
    hookOutcome: HookOutcomeSchema.optional(),
  }),
  output: z.object({ step: ToolStepSchema }),
});
