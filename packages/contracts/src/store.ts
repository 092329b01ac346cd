// What the store serves. Writes carry `opId`: sent again with the same `opId` they answer what they answered first.
// Writes of agent-core also carry `epoch` and are refused with STALE_EPOCH when another agent-core leads.
import { z } from "zod";
import { request } from "./contract.ts";
import { DurableEventSchema } from "./events.ts";
import { contactRoles, InboundMessageSchema, ReplyAddressSchema } from "./inbound.ts";
import { MessageSchema, PartSchema, ToolResultPart, UsageSchema } from "./messages.ts";
import {
  ClaimedTurnSchema,
  exitReasons,
  HistorySchema,
  SessionSummarySchema,
  toolClasses,
  ToolStepSchema,
  turnStates,
  TurnSummarySchema,
} from "./turns.ts";

const Empty = z.object({});
const Fenced = { opId: z.uuid(), epoch: z.number().int() };
const LeaseRef = z.object({ name: z.string(), fence: z.number().int() });

/** A text that goes out when the enclosing step commits. */
export const OutgoingSchema = z.object({
  address: ReplyAddressSchema,
  text: z.string(),
  /** A message that nobody wants late: dropped when it could not be sent by then. */
  expiresInMs: z.number().int().positive(),
});
export type Outgoing = z.infer<typeof OutgoingSchema>;

export const FinishSchema = z.object({
  state: z.enum(turnStates).exclude(["running"]),
  exitReason: z.enum(exitReasons),
  /** The answer, or what the user is told instead. Never empty. */
  text: z.string().min(1),
});
export type Finish = z.infer<typeof FinishSchema>;

export const inboxPut = request({
  subject: "store.inbox.put",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Keep one inbound message. The reply comes after the commit; only then may the platform be answered. A message with a known (channel, account, externalId) is a duplicate and changes nothing; `same` says whether it also says the same.",
  input: z.object({
    message: InboundMessageSchema,
    /** Which conversation thread it belongs to, as `route` decided. */
    sessionKey: z.string().min(1).max(600),
    /** The connection the message came over; FENCED when it is no longer ours. The cursor is saved in the same commit. */
    lease: LeaseRef.extend({ cursor: z.string() }).optional(),
  }),
  output: z.object({
    inboxId: z.string(),
    sessionId: z.string(),
    duplicate: z.boolean(),
    /** False for a duplicate whose parts are others than those that are kept. */
    same: z.boolean(),
  }),
});

export const inboxGet = request({
  subject: "store.inbox.get",
  server: "store",
  clients: ["channel-gateway"],
  doc: "What became of one inbound message; `turn` once it has been claimed.",
  input: z.object({ inboxId: z.string() }),
  output: z.object({
    state: z.enum(["queued", "claimed", "done", "dead", "cancelled"]),
    sessionId: z.string(),
    turn: TurnSummarySchema.nullable(),
  }),
});

export const inboxPending = request({
  subject: "store.inbox.pending",
  server: "store",
  clients: ["agent-core"],
  doc: "Sessions with work: queued rows without a running turn, and running turns. The leader leaves out what it is working on. The sweep.",
  input: z.object({ epoch: z.number().int(), limit: z.number().int().max(1000) }),
  output: z.object({
    sessions: z.array(z.object({ sessionId: z.string(), priority: z.number().int(), resume: z.boolean() })),
  }),
});

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

export const sessionGet = request({
  subject: "store.session.get",
  server: "store",
  clients: ["channel-gateway"],
  doc: "One session, by id or key.",
  input: z.object({ sessionId: z.string().optional(), key: z.string().optional() }),
  output: z.object({ session: SessionSummarySchema.nullable() }),
});

export const sessionList = request({
  subject: "store.session.list",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Sessions, most recently used first.",
  input: z.object({ limit: z.number().int().min(1).max(200), before: z.string().optional() }),
  output: z.object({ sessions: z.array(SessionSummarySchema) }),
});

export const sessionMessages = request({
  subject: "store.session.messages",
  server: "store",
  clients: ["channel-gateway", "agent-core"],
  doc: "Messages of a session after a position, in order, as many as fit one reply. With `beforeSeq` the newest before it instead.",
  input: z.object({
    sessionId: z.string(),
    afterSeq: z.number().int(),
    beforeSeq: z.number().int().optional(),
    limit: z.number().int().min(1).max(1000),
  }),
  output: HistorySchema,
});

export const eventList = request({
  subject: "store.event.list",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Durable events of a session after a position, in order, as many as fit one reply.",
  input: z.object({ sessionId: z.string(), afterSeq: z.number().int(), limit: z.number().int().min(1).max(1000) }),
  output: z.object({ events: z.array(DurableEventSchema), more: z.boolean() }),
});

export const OutboxRowSchema = z.object({
  outboxId: z.string(),
  turnId: z.string().nullable(),
  ordinal: z.number().int(),
  address: ReplyAddressSchema,
  text: z.string(),
  /** Passed on where the platform deduplicates. */
  idempotencyKey: z.string(),
  attempts: z.number().int(),
  /** ISO 8601, UTC. */
  expiresAt: z.string(),
});
export type OutboxRow = z.infer<typeof OutboxRowSchema>;

const Owner = z.object({
  /** Stable name of the replica, e.g. the pod. */
  replica: z.string(),
  /** New on every start: rows that an earlier life of this replica left in `sending` are settled at once. */
  incarnation: z.string(),
});

export const outboxClaim = request({
  subject: "store.outbox.claim",
  server: "store",
  clients: ["channel-gateway"],
  doc: "`pending → sending` for the oldest row of each conversation of an account that has none in flight. Rows left in `sending` by a dead sender are claimed again where the platform deduplicates, else they become `unknown`. Rows past their expiry become `dropped`.",
  input: z.object({
    opId: z.uuid(),
    owner: Owner,
    channel: z.string(),
    account: z.string(),
    /** For channels with an owned connection: FENCED when it is no longer ours. */
    lease: LeaseRef.optional(),
    deduplicates: z.boolean(),
    limit: z.number().int().min(1).max(100),
    /** A row not settled within this time counts as left behind. */
    claimMs: z.number().int(),
  }),
  output: z.object({ rows: z.array(OutboxRowSchema) }),
});

export const outboxSettle = request({
  subject: "store.outbox.settle",
  server: "store",
  clients: ["channel-gateway"],
  doc: "`sending → sent | pending (retry) | unknown | dropped`.",
  input: z.object({
    opId: z.uuid(),
    outboxId: z.string(),
    owner: Owner,
    outcome: z.discriminatedUnion("state", [
      z.object({ state: z.literal("sent"), providerMessageId: z.string().nullable() }),
      z.object({ state: z.literal("retry"), afterMs: z.number().int().nonnegative(), reason: z.string() }),
      z.object({ state: z.literal("unknown"), reason: z.string() }),
      z.object({ state: z.literal("dropped"), reason: z.string() }),
    ]),
  }),
  output: z.object({ settled: z.boolean() }),
});

export const outboxPut = request({
  subject: "store.outbox.put",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Send a text that belongs to no turn: a pairing code, a command's answer, `parley send`. Unique by `opId`.",
  input: z.object({ opId: z.uuid(), outgoing: OutgoingSchema }),
  output: z.object({ outboxId: z.string() }),
});

export const outboxGet = request({
  subject: "store.outbox.get",
  server: "store",
  clients: ["channel-gateway"],
  doc: "How the delivery of one text stands.",
  input: z.object({ outboxId: z.string() }),
  output: z.object({
    state: z.enum(["pending", "sending", "sent", "unknown", "dropped"]),
    attempts: z.number().int(),
    providerMessageId: z.string().nullable(),
    error: z.string().nullable(),
  }),
});

export const leadershipAcquire = request({
  subject: "store.leadership.acquire",
  server: "store",
  clients: ["agent-core"],
  doc: "Take the leadership over: waits for running writes, then raises the epoch. Everything with an older epoch is refused from then on.",
  input: z.object({ opId: z.uuid(), holder: z.string() }),
  output: z.object({ epoch: z.number().int() }),
});

export const leaseAcquire = request({
  subject: "store.lease.acquire",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Own a connection that must have one owner. Granted when nobody holds it or the holder's time is over; each grant has a higher fence.",
  input: z.object({ name: z.string(), owner: z.string(), ttlMs: z.number().int().positive() }),
  output: z.object({
    granted: z.boolean(),
    fence: z.number().int(),
    /** Saved with the last message that came over this connection. */
    cursor: z.string().nullable(),
    holder: z.string().nullable(),
  }),
});

export const leaseRenew = request({
  subject: "store.lease.renew",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Keep the connection for another `ttlMs`. FENCED when somebody else has it.",
  input: LeaseRef.extend({ ttlMs: z.number().int().positive() }),
  output: Empty,
});

export const leaseRelease = request({
  subject: "store.lease.release",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Give the connection up at once; standbys hear `lease.released`.",
  input: LeaseRef,
  output: Empty,
});

export const ContactSchema = z.object({
  channel: z.string(),
  account: z.string(),
  contactId: z.string(),
  name: z.string().nullable(),
  role: z.enum([...contactRoles, "blocked"]),
});

export const contactGet = request({
  subject: "store.contact.get",
  server: "store",
  clients: ["channel-gateway"],
  doc: "A person who was let in by pairing; null for a stranger.",
  input: z.object({ channel: z.string(), account: z.string(), contactId: z.string() }),
  output: z.object({ contact: ContactSchema.nullable() }),
});

export const pairingRequest = request({
  subject: "store.pairing.request",
  server: "store",
  clients: ["channel-gateway"],
  doc: "A stranger asks to be let in. The gateway makes the code and shows it to them; only its hash is kept with the request. `outgoing`, the text that shows it, goes out exactly when the request is `created`, in the same commit. Refused (`full`) beyond three open codes an account; a contact with an open code gets no second one (`pending`).",
  input: z.object({
    channel: z.string(),
    account: z.string(),
    contactId: z.string(),
    name: z.string().nullable(),
    codeSha256: z.string().length(64),
    ttlMs: z.number().int().positive(),
    outgoing: OutgoingSchema.optional(),
  }),
  output: z.object({ status: z.enum(["created", "pending", "full"]) }),
});

export const pairingList = request({
  subject: "store.pairing.list",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Open pairing requests.",
  input: Empty,
  output: z.object({
    pairings: z.array(
      z.object({
        channel: z.string(),
        account: z.string(),
        contactId: z.string(),
        name: z.string().nullable(),
        expiresAt: z.string(),
      }),
    ),
  }),
});

export const pairingApprove = request({
  subject: "store.pairing.approve",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Let the person in who was shown this code. Single use; NOT_FOUND when no open request has it.",
  input: z.object({ codeSha256: z.string().length(64), role: z.enum(contactRoles) }),
  output: z.object({ contact: ContactSchema }),
});

export const inboxReady = z.object({ sessionId: z.string(), priority: z.number().int() });
export const outboxReady = z.object({ account: z.string() });
