// Turns and steps: claimed, committed, ended. Writes of agent-core carry `epoch` and are refused with STALE_EPOCH when another
// agent-core leads.
import { z } from "zod";
import { request } from "../contract.ts";
import { DurableEventSchema } from "../events.ts";
import { MessageSchema, PartSchema, ToolResultPart, UsageSchema } from "../messages.ts";
import {
  ClaimedTurnSchema,
  CostSchema,
  exitReasons,
  SessionOverridesSchema,
  SessionStateSchema,
  taskModes,
  toolClasses,
  ToolStepSchema,
  turnStates,
  TurnSummarySchema,
} from "../turns.ts";
import { ReplyAddressSchema } from "../inbound.ts";
import { Fenced, OutgoingSchema } from "./shared.ts";

export const FinishSchema = z.object({
  state: z.enum(turnStates).exclude(["running"]),
  exitReason: z.enum(exitReasons),
  /** The answer, or what the user is told instead. Never empty. */
  text: z.string().min(1),
});
export type Finish = z.infer<typeof FinishSchema>;

/** Results that a hook has rewritten after they were settled; they go into the conversation in their new form. */
const Rewritten = z.array(z.object({ n: z.number().int(), result: ToolResultPart }));

/**
 * Small results of `pure` calls that no runner has settled: settled in this commit, in place of whatever an earlier try of the
 * same call has left, so that the conversation holds what the model was shown.
 */
const SettledHere = z.array(
  z.object({ n: z.number().int(), state: z.enum(["done", "failed"]), result: ToolResultPart }),
);
export type SettledHere = z.infer<typeof SettledHere>;

/** Whether the turn is tainted: the messages that this request writes, but for input of people, are marked with it. Left out: it is not. */
const Tainted = z.boolean().optional();

export const turnClaim = request({
  subject: "store.turn.claim",
  server: "store",
  clients: ["agent-core"],
  doc: "Take the session's next work: its running turn (resumed), else the first queued row by priority and order, which becomes a turn and a user message. `dead`: the turn was claimed too often and has been ended with a notice. History comes with it: what is newer than `knownSeq`, at most the newest that fit one reply. Rows that wait for their window, and turns that are parked, are not there yet (`empty`).",
  input: z.object({
    ...Fenced,
    sessionId: z.string(),
    knownSeq: z.number().int(),
    maxClaims: z.number().int(),
    /** Said in place of the results that a dead turn leaves unread; left out: they stand. */
    withhold: z.string().min(1).optional(),
    /** Seconds of waiting that lift a row by one step of priority; left out: 300. */
    ageingSeconds: z.number().int().positive().optional(),
  }),
  output: z.discriminatedUnion("status", [
    z.object({ status: z.literal("empty") }),
    z.object({ status: z.literal("dead"), finished: z.array(DurableEventSchema) }),
    z.object({
      status: z.enum(["started", "resumed"]),
      turn: ClaimedTurnSchema,
      session: SessionStateSchema,
      /** Input waits that may join this turn. */
      steerable: z.boolean(),
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
  doc: "Commit one model call whole: the tool results before it (taken from their settled steps, or settled here), its message, its usage, the tool calls it asks for, what goes out, and the end of the turn where it is the closing step.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    /** Step number of the model call. */
    n: z.number().int(),
    model: z.string(),
    stopReason: z.string(),
    usage: UsageSchema,
    /** Millionths of a US dollar; left out: the price is not known. */
    costMicros: z.number().int().nonnegative().optional(),
    parts: z.array(PartSchema),
    /** How many tool results the leader has seen since the last message; CONFLICT when the store counts otherwise. */
    results: z.number().int().nonnegative(),
    rewritten: Rewritten.optional(),
    settled: SettledHere.optional(),
    tainted: Tainted,
    /** Numbered n+1, n+2 … in call order. */
    toolCalls: z.array(
      z.object({ callId: z.string(), tool: z.string(), class: z.enum(toolClasses), input: z.string() }),
    ),
    outgoing: z.array(OutgoingSchema),
    /** What the loop itself says next, as a user message behind the answer (a nudge, the words of a Stop hook). Not with tool calls, not at the end. */
    note: z.array(PartSchema).min(1).optional(),
    /** The session's system prompt and tools from now on, kept by `store.prefix.put`; left out: unchanged. */
    prefixHash: z.string().optional(),
    finish: FinishSchema.nullable(),
  }),
  output: z.object({
    /** Position of the message that holds the tool results before this call; null when there were none. */
    resultsSeq: z.number().int().nullable(),
    messageSeq: z.number().int(),
    noteSeq: z.number().int().nullable(),
    /** Position of `turn.finished`; null while the turn goes on. */
    finishSeq: z.number().int().nullable(),
    /** Of the whole turn so far. */
    usage: UsageSchema,
    cost: CostSchema,
    /** With the end of the turn: something waits behind it in the session. */
    queued: z.boolean(),
    /** Input waits that may join this turn. */
    steerable: z.boolean(),
    /** As it stands now: what a person has changed applies from the next call. */
    overrides: SessionOverridesSchema,
    /** The user has asked to stop this turn. */
    cancelRequested: z.boolean(),
    /** ISO 8601, UTC: the time of every message and event of this commit. */
    at: z.string(),
  }),
});

export const turnAppend = request({
  subject: "store.turn.append",
  server: "store",
  clients: ["agent-core"],
  doc: "Add to a running turn's conversation between two model calls, in this order: the results of its open calls, the loop's own notes, and what waits in the inbox and may join (`absorb`). With `skipped`, calls that were not started get it as their result first.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    /** As in `store.step.commit`, skipped calls not counted. */
    results: z.number().int().nonnegative(),
    rewritten: Rewritten.optional(),
    settled: SettledHere.optional(),
    tainted: Tainted,
    /** Said to the model about each call that was not started; null: there must be none. */
    skipped: z.string().nullable(),
    notes: z.array(z.array(PartSchema)),
    absorb: z.boolean(),
  }),
  output: z.object({
    /** What was appended, in order. */
    events: z.array(DurableEventSchema),
    inboxIds: z.array(z.string()),
    /** Conversations that wait for the answer as well. */
    alsoTo: z.array(ReplyAddressSchema),
  }),
});

export const turnPark = request({
  subject: "store.turn.park",
  server: "store",
  clients: ["agent-core"],
  doc: "Put a turn aside that waits for somebody else. Not done (`parked: false`) when what it waits for has happened meanwhile: a result is there, an approval is decided, the user has stopped it. Whoever brings that later wakes the turn in the same transaction.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    /** Steps whose result, or decision, is waited for. */
    waitingFor: z.array(z.number().int()).min(1),
    /** ISO 8601, UTC: when the turn is looked at again in any case; null: never. */
    wakeAt: z.string().nullable(),
    settled: SettledHere.optional(),
  }),
  output: z.object({ parked: z.boolean() }),
});

export const turnSpawn = request({
  subject: "store.turn.spawn",
  server: "store",
  clients: ["agent-core"],
  doc: "Start a sub-agent for a tool step: its session and its first input, in one commit, once a step. `wait`: the step runs until the child's turn ends, whose text is its result. `background`: the step is settled at once, with the child's session; the child's end comes to the parent's session as input.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    n: z.number().int(),
    mode: z.enum(taskModes),
    profile: z.string(),
    title: z.string(),
    /** The task, in the words of the parent. */
    parts: z.array(PartSchema),
    /** The turn is tainted, and with it the task. Left out: it is not. */
    tainted: z.boolean().optional(),
    /** Children of this session that may be at work at the same time. */
    maxChildren: z.number().int().positive(),
    /** A child of this session that goes on with what it knows; null: a new one. */
    resume: z.string().nullable(),
    /** Of the background result: whether it may join a running turn. */
    announce: z.enum(["steer", "queue"]),
  }),
  output: z.discriminatedUnion("status", [
    z.object({ status: z.literal("started"), sessionId: z.string(), step: ToolStepSchema }),
    /** Too many at work, or nothing to resume; the step is untouched. */
    z.object({ status: z.literal("refused"), reason: z.string() }),
  ]),
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
    /** The prefix that `parts` were answered under, as in `store.step.commit`; left out: unchanged. */
    prefixHash: z.string().optional(),
    rewritten: Rewritten.optional(),
    settled: SettledHere.optional(),
    tainted: Tainted,
    /** Said in place of the results of these steps, where they have one. */
    withhold: z.object({ steps: z.array(z.number().int()).min(1), text: z.string().min(1) }).optional(),
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

/** Whose work may be stopped. */
const StartedBySchema = z.object({
  /** The trust that the person speaks with now. */
  trust: z.string(),
  /** Left out: a conversation with one person, where all of this trust is theirs. */
  sender: z.object({ channel: z.string(), account: z.string(), contactId: z.string() }).optional(),
});

export const turnCancel = request({
  subject: "store.turn.cancel",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Remember that the session's running turn shall stop, with the sub-agents it waits for, and, with `queued`, take back what waits behind it; with `startedBy`, only a turn that this person started, and messages of theirs. With `background`, also the sub-agents it does not wait for. The leader is told at once by `agent.control.cancel` about each of `turns`; this makes it survive the leader.",
  input: z.object({
    sessionId: z.string(),
    turnId: z.string().optional(),
    queued: z.boolean(),
    background: z.boolean().optional(),
    /** Left out: anybody's. A turn of another trust, or started by a message of another sender, is not stopped. */
    startedBy: StartedBySchema.optional(),
  }),
  output: z.object({
    turnId: z.string().nullable(),
    cancelledQueued: z.number().int(),
    /** Every running turn that shall stop. */
    turns: z.array(z.object({ sessionId: z.string(), turnId: z.string() })),
  }),
});

export const turnGet = request({
  subject: "store.turn.get",
  server: "store",
  clients: ["channel-gateway", "agent-core"],
  doc: "One turn and its newest tool steps, as many as fit one reply; with `n` that step alone.",
  input: z.object({ turnId: z.string(), n: z.number().int().optional() }),
  output: z.object({ turn: TurnSummarySchema, steps: z.array(ToolStepSchema), cancelRequested: z.boolean() }),
});

export const stepSettle = request({
  subject: "store.step.settle",
  server: "store",
  clients: ["agent-core"],
  doc: "The leader gives a tool step its final state and result. The first settlement wins; the reply carries the one that counts.",
  input: z.object({
    opId: z.uuid(),
    epoch: z.number().int(),
    turnId: z.string(),
    n: z.number().int(),
    state: z.enum(["done", "failed", "cancelled", "unknown"]),
    result: ToolResultPart,
    /** What this step sends: put into the outbox in the same commit, if this settlement counts. */
    outgoing: z.array(OutgoingSchema).optional(),
  }),
  output: z.object({ step: ToolStepSchema }),
});
