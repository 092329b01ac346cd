// Outbox rows: texts and files to send. A gateway claims a row before it sends it and settles the row with the outcome.
import { z } from "zod";
import { AttachmentSchema } from "../attachments.ts";
import { ReplyAddressSchema } from "../inbound.ts";
import { ActionSchema, LeaseRef, OutgoingSchema, storeRequest } from "./shared.ts";

export const OutboxRowSchema = z.object({
  outboxId: z.string(),
  turnId: z.string().nullable(),
  ordinal: z.number().int(),
  address: ReplyAddressSchema,
  /** Empty if the row is an attachment. */
  text: z.string(),
  attachment: AttachmentSchema.nullable(),
  /** Attachments that are sent with the last message of the text. Omitted: none. */
  files: z.array(AttachmentSchema).optional(),
  /** Buttons below the text. Omitted: none. */
  actions: z.array(ActionSchema).optional(),
  /** The same for each attempt to send this message; passed to platforms that deduplicate. */
  idempotencyKey: z.string(),
  attempts: z.number().int(),
  /** Where the next message begins in the text, in UTF-16 units of the plain text; omitted: at the start. */
  position: z.number().int().nonnegative().optional(),
  /** Number of messages of this text that were sent. Omitted: none. */
  parts: z.number().int().nonnegative().optional(),
  /** The sender crashed while the message at `position` was in flight, so it may have arrived. Omitted: false. */
  interrupted: z.boolean().optional(),
  /** The platform's id of the preview that the first message of this text replaces. An empty text deletes it. Omitted: none. */
  replaces: z.string().optional(),
  /** ISO 8601, UTC. After this time the row is dropped. */
  expiresAt: z.string(),
  /** W3C trace context of the turn that sends it; null without tracing. */
  trace: z.string().nullable(),
});
export type OutboxRow = z.infer<typeof OutboxRowSchema>;

/** A limit: `burst` messages at once, then one message per `everyMs`. */
const SendRate = z.object({ burst: z.number().int().positive(), everyMs: z.number().positive() });

/** The limits of an account, shared by all replicas. A conversation has the first limit whose pattern, a regular expression, matches it. */
export const SendRatesSchema = z.object({
  account: SendRate.optional(),
  conversations: z.array(SendRate.extend({ pattern: z.string() })).optional(),
});

/** The gateway process that sends a row. */
export const OwnerSchema = z.object({
  /** Stable name of the replica, e.g. the pod. */
  replica: z.string(),
  /** New on every start, so that the store settles immediately the rows that the replica's previous process left in `sending`. */
  incarnation: z.string(),
});

export const outboxPut = storeRequest({
  subject: "store.outbox.put",
  clients: ["channel-gateway"],
  doc: "Enqueue a text outside of any turn: a pairing code, a command's reply, `parley send`. Unique by `opId`, without attachments.",
  input: z.object({ opId: z.uuid(), outgoing: OutgoingSchema }),
  output: z.object({ outboxId: z.string() }),
});

export const outboxGet = storeRequest({
  subject: "store.outbox.get",
  clients: ["channel-gateway"],
  doc: "Get the delivery state of one text.",
  input: z.object({ outboxId: z.string() }),
  output: z.object({
    state: z.enum(["pending", "sending", "sent", "unknown", "dropped"]),
    attempts: z.number().int(),
    /** The platform's id of the first message. */
    providerMessageId: z.string().nullable(),
    /** The platform's ids of all messages that it reported, in order. */
    providerMessageIds: z.array(z.string()),
    error: z.string().nullable(),
  }),
});

export const outboxFind = storeRequest({
  subject: "store.outbox.find",
  clients: ["channel-gateway"],
  doc: "Get the text that a message on the platform belongs to, among the newest 5,000 texts; null: none of them.",
  input: z.object({
    channel: z.string(),
    account: z.string(),
    conversation: z.string(),
    /** The platform's id of the message. */
    messageId: z.string(),
  }),
  output: z.object({
    /** The text before it was formatted for the platform, truncated to 2,000 characters. */
    text: z.string().nullable(),
  }),
});

export const outboxClaim = storeRequest({
  subject: "store.outbox.claim",
  clients: ["channel-gateway"],
  doc: "Move the oldest row of each conversation of an account from `pending` to `sending`, if the conversation has none in flight, within the rates and after the pauses that the platform demanded. A claim is for one platform message: a longer text becomes `pending` again after each. Rows that a crashed sender left in `sending` are claimed again where the platform deduplicates; otherwise they are returned as `interrupted`, or become `unknown` where the caller cannot continue texts. Rows that the caller claimed and does not name in `unsettled` are returned again: the response of their claim was lost. Expired rows become `dropped`. With `previews`, the first text of an ended turn replaces the turn's preview; a preview that no text replaces is deleted by a row of its own.",
  input: z.object({
    opId: z.uuid(),
    owner: OwnerSchema,
    channel: z.string(),
    account: z.string(),
    /** For channels with an owned connection: FENCED when the caller no longer owns it. */
    lease: LeaseRef.optional(),
    deduplicates: z.boolean(),
    /** The caller sends one message of a text per claim and settles `part` and `doubtful`. Omitted by an older gateway. */
    continues: z.boolean().optional(),
    /** Charged for each claimed row. Omitted: no limits. */
    rates: SendRatesSchema.optional(),
    /** The caller edits previews: texts replace those of their turns. Omitted: there are none. */
    previews: z.boolean().optional(),
    /** The caller sends the files of a turn together with the text before them. Omitted: each file is a row of its own. */
    filesWithText: z.boolean().optional(),
    limit: z.number().int().min(1).max(100),
    /** A row that is not settled within this time counts as abandoned. */
    claimMs: z.number().int(),
    /** Rows of earlier claims whose outcome the caller has not stored. Omitted by an older gateway: it waits for lost rows until their claim expires. */
    unsettled: z.array(z.string()).optional(),
  }),
  output: z.object({
    rows: z.array(OutboxRowSchema),
    /** When the next row that a rate or a pause holds back may be claimed. Omitted: none is held back. */
    waitMs: z.number().optional(),
  }),
});

export const outboxOpen = storeRequest({
  subject: "store.outbox.open",
  clients: ["channel-gateway"],
  doc: "List those of the accounts that have texts which are not settled, or previews. A replica asks for all its accounts in one request, so that a text is sent although its hint was lost.",
  input: z.object({
    /** `channel:account`. */
    accounts: z.array(z.string()).max(1_000),
  }),
  output: z.object({ accounts: z.array(z.string()) }),
});

export const outboxSettle = storeRequest({
  subject: "store.outbox.settle",
  clients: ["channel-gateway"],
  doc: "Settle a claimed row: `sending → sent | pending (retry, part, doubtful) | unknown | dropped`. A text with a `doubtful` message ends as `unknown`. A `retry` with a scope pauses the conversation or the account for all replicas; a pause is never shortened.",
  input: z.object({
    opId: z.uuid(),
    outboxId: z.string(),
    owner: OwnerSchema,
    outcome: z.discriminatedUnion("state", [
      z.object({
        state: z.literal("sent"),
        providerMessageId: z.string().nullable(),
        /** The position of the rest of the text, which waits for `store.outbox.more`. Omitted: the text is complete. */
        heldAt: z.number().int().positive().optional(),
      }),
      /** One message of the text was sent; the next one begins at `position`. */
      z.object({
        state: z.literal("part"),
        providerMessageId: z.string().nullable(),
        position: z.number().int().positive(),
      }),
      /** One message may have arrived and is not sent again; the next one begins at `position`. */
      z.object({ state: z.literal("doubtful"), reason: z.string(), position: z.number().int().positive() }),
      z.object({
        state: z.literal("retry"),
        afterMs: z.number().int().nonnegative(),
        reason: z.string(),
        /** What the platform limits; omitted: only this text waits. */
        scope: z.enum(["conversation", "account"]).optional(),
        /** The platform was not called, because of a pause, so this does not count as an attempt. Omitted: it was called. */
        held: z.boolean().optional(),
        /** The preview cannot be edited, so the next attempt sends a new message. Omitted: the text replaces its preview. */
        withoutPreview: z.boolean().optional(),
      }),
      z.object({ state: z.literal("unknown"), reason: z.string() }),
      z.object({ state: z.literal("dropped"), reason: z.string() }),
    ]),
  }),
  output: z.object({ settled: z.boolean() }),
});

export const outboxMore = storeRequest({
  subject: "store.outbox.more",
  clients: ["channel-gateway"],
  doc: "Send the rest of the latest text of a conversation whose rest waits (`heldAt`). It waits for 30 days, or until the session has a successor (`store.session.open`).",
  input: z.object({
    opId: z.uuid(),
    channel: z.string(),
    account: z.string(),
    conversation: z.string(),
    /** Dropped if it could not be sent within this time. */
    expiresInMs: z.number().int().positive(),
  }),
  output: z.object({ found: z.boolean() }),
});

/** The payload of the hint `outbox.ready`: the name of the account. */
export const outboxReady = z.object({ account: z.string() });

/** The payload of the hint `send.paused`. The pause begins when a gateway receives the hint. */
export const sendPaused = z.object({
  channel: z.string(),
  account: z.string(),
  /** The conversation of the call that the platform rejected. */
  conversation: z.string(),
  scope: z.enum(["conversation", "account"]),
  forMs: z.number().nonnegative(),
});
