// Inbox rows: stored once, listed, and found by the sweep.
import { z } from "zod";
import { InboundMessageSchema } from "../inbound.ts";
import { MessageSchema, SenderSchema } from "../messages.ts";
import { TrustLevelSchema } from "../principals.ts";
import { queueModes, queueOrders } from "../settings/queue.ts";
import { ClaimedTurnSchema, SessionStateSchema, TurnSummarySchema } from "../turns.ts";
import { OverLimitSchema, PersonLimitsSchema } from "./person-limits.ts";
import { LeaseRef, optionalOpId, OutgoingSchema, storeRequest } from "./shared.ts";

export const inboxPut = storeRequest({
  subject: "store.inbox.put",
  clients: ["channel-gateway", "agent-core"],
  doc: "Store one inbound message. The reply comes after the commit; only then may the gateway acknowledge the message to the platform. A message with a known (channel, account, externalId) is a duplicate and changes nothing, and so is one with a known `content` of the account; `same` reports whether its content is also equal.",
  input: z.object({
    message: InboundMessageSchema,
    /** The thread it belongs to, as routing decided. */
    sessionKey: z.string().min(1).max(600),
    /** The connection that received the message; FENCED when the caller no longer owns it. The cursor is saved in the same commit. */
    lease: LeaseRef.extend({ cursor: z.string() }).optional(),
    /**
     * Required with parts of the type `pending_file`: the caller fetches the files under the fence `firstFileFence`, and another replica may
     * claim them after `claimMs`. After `dueMs` notes replace the files.
     */
    files: z.object({ claimMs: z.number().int().positive(), dueMs: z.number().int().positive() }).optional(),
    /**
     * For senders that sign the content without the external id: within `sameWithinMs` the same content is the same message under any
     * external id of the account.
     */
    content: z.object({ id: z.string().min(1).max(128), sameWithinMs: z.number().int().positive() }).optional(),
    /** The message also contains what `store.group.keep` stored of its place. Omitted: nothing. */
    context: z.object({ place: z.string().min(1) }).optional(),
    /** The profile of the session, if this message is its first. Omitted: the agent itself. */
    profile: z.string().optional(),
    /** The id of the session if this message creates it. Omitted: the store chooses one. */
    newSessionId: z.uuid().optional(),
    /** Whose limits the message counts toward, at its channel and account: their own ones, else these. Omitted: nobody's. */
    limits: z.object({ personId: z.string().min(1), defaults: PersonLimitsSchema }).optional(),
    /** The session serves this one call: lists leave it out, and it is deleted after `session.call_retention_days`. Omitted: false. */
    singleCall: z.boolean().optional(),
  }),
  output: z.object({
    inboxId: z.string(),
    sessionId: z.string(),
    duplicate: z.boolean(),
    /** Of a duplicate: it has not become part of a turn yet. Omitted: false. */
    waits: z.boolean().optional(),
    /** False for a duplicate whose parts differ from the stored ones. */
    same: z.boolean(),
    /** Nothing was stored: the mode is `reject` and the session is busy, or the sender is over a limit. */
    refused: z.boolean(),
    /** The limit that refused the message. Omitted: none did. */
    overLimit: OverLimitSchema.optional(),
    /** The running turn of the session at that moment, and its trust; only in the modes `interrupt` and `reject`. */
    runningTurnId: z.string().nullable(),
    runningTrust: TrustLevelSchema.nullable(),
    /** The running turn is exclusive. Omitted: false. */
    runningExclusive: z.boolean().optional(),
    /** The newest approval question that the session's turn waits for: this message is processed only after its answer. Omitted: none. */
    heldUpBy: z.string().optional(),
  }),
});

export const inboxGet = storeRequest({
  subject: "store.inbox.get",
  clients: ["channel-gateway"],
  doc: "Get the state of one inbound message, with `turn` after it has been claimed.",
  input: z.object({ inboxId: z.string() }),
  output: z.object({
    state: z.enum(["queued", "claimed", "done", "dead", "cancelled"]),
    sessionId: z.string(),
    turn: TurnSummarySchema.nullable(),
  }),
});

export const inboxPending = storeRequest({
  subject: "store.inbox.pending",
  clients: ["agent-core"],
  doc: "The sweep: list sessions with work, which are queued rows without a running turn, and running turns. The leader ignores sessions that it already works on.",
  input: z.object({ epoch: z.number().int(), limit: z.number().int().max(1000) }),
  output: z.object({
    sessions: z.array(z.object({ sessionId: z.string(), priority: z.number().int(), resume: z.boolean() })),
  }),
});

/** One row of a session's queue. */
const QueuedMessageSchema = z.object({
  inboxId: z.string(),
  text: z.string(),
  from: SenderSchema,
  mode: z.enum(queueModes),
  priority: z.number().int(),
  /** ISO 8601, UTC. */
  receivedAt: z.string(),
});
export type QueuedMessage = z.infer<typeof QueuedMessageSchema>;

export const inboxList = storeRequest({
  subject: "store.inbox.list",
  clients: ["channel-gateway"],
  doc: "List a session's queue in processing order (by priority long waiting can raise a row), as much as fits in one reply; texts are truncated to 2,000 characters.",
  input: z.object({
    sessionId: z.string(),
    limit: z.number().int().min(1).max(100),
    /** Omitted: `priority`. */
    order: z.enum(queueOrders).optional(),
  }),
  output: z.object({ rows: z.array(QueuedMessageSchema), more: z.boolean() }),
});

export const inboxEdit = storeRequest({
  subject: "store.inbox.edit",
  clients: ["channel-gateway"],
  doc: "Change the text or the mode of a queued row, or cancel it. Not done when the row is no longer queued, and not for the mode of an exclusive row.",
  input: z.object({
    opId: optionalOpId,
    inboxId: z.string(),
    change: z.discriminatedUnion("do", [
      z.object({ do: z.literal("cancel") }),
      z.object({ do: z.literal("text"), text: z.string().min(1) }),
      z.object({ do: z.literal("mode"), mode: z.enum(["steer", "queue"]) }),
    ]),
  }),
  output: z.object({ changed: z.boolean() }),
});

export const inboxChange = storeRequest({
  subject: "store.inbox.change",
  clients: ["channel-gateway"],
  doc: "Apply what the sender did to a message on the platform: a queued row gets the new text, or is withdrawn. A row that a turn has read does not change.",
  input: z.object({
    channel: z.string(),
    account: z.string(),
    conversation: z.string(),
    /** As in `messageId` of the stored message. */
    messageId: z.string(),
    /** Who changed it; only the sender changes a text. */
    contactId: z.string(),
    change: z.discriminatedUnion("do", [
      z.object({ do: z.literal("text"), text: z.string().min(1) }),
      z.object({ do: z.literal("withdraw") }),
    ]),
  }),
  output: z.object({
    /** `unchanged`: it has this text already. `processed`: it is no longer queued. `unknown`: there is no such message of this person. */
    outcome: z.enum(["changed", "unchanged", "processed", "unknown"]),
    /** The turn that read the message is running. */
    running: z.boolean(),
    /** The text before the change, truncated to 2,000 characters. */
    text: z.string(),
  }),
});

export const groupLeave = storeRequest({
  subject: "store.group.leave",
  clients: ["channel-gateway"],
  doc: "End what waits in a group that the agent was removed from: queued messages are cancelled and waiting texts dropped, also of the group's threads (`<group>:…`, `<group>/…`). The owner is told where they wrote last. The caller cancels `turns`.",
  input: z.object({
    opId: z.uuid(),
    channel: z.string(),
    account: z.string(),
    group: z.string().min(1),
    toOwner: OutgoingSchema.omit({ address: true }),
  }),
  output: z.object({
    messages: z.number().int(),
    texts: z.number().int(),
    /** Running turns with messages of the group. */
    turns: z.array(z.object({ sessionId: z.string(), turnId: z.string() })),
  }),
});

export const groupKeep = storeRequest({
  subject: "store.group.keep",
  clients: ["channel-gateway"],
  doc: "Keep a message of a group that does not mention the agent, until one of the same place that does contains its text (`context` of `store.inbox.put`). At most the last 50 of a place, 16 KB together, for a day; a text is truncated to 1,000 characters.",
  input: z.object({
    channel: z.string().min(1),
    account: z.string().min(1),
    /** As of a stored message: a redelivery is not kept again. */
    externalId: z.string().min(1).max(512),
    /** Omitted: `externalId`. */
    messageId: z.string().min(1).max(512).optional(),
    conversation: z.string().min(1).max(512),
    /** Where people read it: the group, or one of its threads. */
    place: z.string().min(1).max(512),
    /** The route of its place, as routing decides; a new session of the route drops the text. */
    route: z.string().min(1).max(600),
    contact: z.object({ id: z.string(), name: z.string().optional() }),
    text: z.string().min(1),
  }),
  output: z.object({
    /** False: it was kept before. */
    kept: z.boolean(),
  }),
});

export const inboxFlush = storeRequest({
  subject: "store.inbox.flush",
  clients: ["channel-gateway"],
  doc: "Release a session's `coalesce` rows, so that they no longer wait for further messages.",
  input: z.object({ sessionId: z.string() }),
  output: z.object({ flushed: z.number().int() }),
});

/** A turn that the store started in the same commit as the message that is its input. */
const StartedTurnSchema = z.object({
  /** The epoch of the leader that owns the turn. */
  epoch: z.number().int(),
  turn: ClaimedTurnSchema,
  session: SessionStateSchema,
  message: MessageSchema,
});
export type StartedTurn = z.infer<typeof StartedTurnSchema>;

export const inboxReady = z.object({
  sessionId: z.string(),
  priority: z.number().int(),
  /** Milliseconds from now at which the row's window ends; omitted: now. */
  afterMs: z.number().int().nonnegative().optional(),
  /** The trust of the row if it may join a running turn; omitted: it may not. */
  steers: TrustLevelSchema.optional(),
  /** The running turn that has the row as its input; omitted: the row is queued. */
  started: StartedTurnSchema.optional(),
});
export type InboxReady = z.infer<typeof inboxReady>;
