// What came in: kept once, looked at, found by the sweep.
import { z } from "zod";
import { request } from "../contract.ts";
import { InboundMessageSchema } from "../inbound.ts";
import { SenderSchema } from "../messages.ts";
import { queueModes } from "../settings/queue.ts";
import { TurnSummarySchema } from "../turns.ts";
import { LeaseRef } from "./shared.ts";

export const inboxPut = request({
  subject: "store.inbox.put",
  server: "store",
  clients: ["channel-gateway", "agent-core"],
  doc: "Keep one inbound message. The reply comes after the commit; only then may the platform be answered. A message with a known (channel, account, externalId) is a duplicate and changes nothing; `same` says whether it also says the same.",
  input: z.object({
    message: InboundMessageSchema,
    /** Which conversation thread it belongs to, as `route` decided. */
    sessionKey: z.string().min(1).max(600),
    /** The connection the message came over; FENCED when it is no longer ours. The cursor is saved in the same commit. */
    lease: LeaseRef.extend({ cursor: z.string() }).optional(),
    /** The session serves this one call: lists leave it out, and it is deleted after `session.call_retention_days`. Left out: false. */
    singleCall: z.boolean().optional(),
  }),
  output: z.object({
    inboxId: z.string(),
    sessionId: z.string(),
    duplicate: z.boolean(),
    /** False for a duplicate whose parts are others than those that are kept. */
    same: z.boolean(),
    /** Nothing was kept: the mode is `reject` and the session is busy. */
    refused: z.boolean(),
    /** What the session was working on at that moment, and whose word that is; known in the modes `interrupt` and `reject`. */
    runningTurnId: z.string().nullable(),
    runningTrust: z.string().nullable(),
    /** The running turn is exclusive. Left out: false. */
    runningExclusive: z.boolean().optional(),
    /** The newest question about a call that the session's turn waits for: this is not looked at before it is answered. Left out: there is none. */
    heldUpBy: z.string().optional(),
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

/** One row of a session's queue. */
const QueuedSchema = z.object({
  inboxId: z.string(),
  text: z.string(),
  from: SenderSchema,
  mode: z.enum(queueModes),
  priority: z.number().int(),
  /** ISO 8601, UTC. */
  receivedAt: z.string(),
});
export type Queued = z.infer<typeof QueuedSchema>;

export const inboxList = request({
  subject: "store.inbox.list",
  server: "store",
  clients: ["channel-gateway"],
  doc: "What waits in a session, by priority and order (long waiting may put a row before), as much as fits one reply; texts cut at 2,000 characters.",
  input: z.object({ sessionId: z.string(), limit: z.number().int().min(1).max(100) }),
  output: z.object({ rows: z.array(QueuedSchema), more: z.boolean() }),
});

export const inboxEdit = request({
  subject: "store.inbox.edit",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Change a row that waits: another text, another mode, or take it back. Not done when it does not wait any more, nor for the mode of an exclusive row.",
  input: z.object({
    inboxId: z.string(),
    change: z.discriminatedUnion("do", [
      z.object({ do: z.literal("cancel") }),
      z.object({ do: z.literal("text"), text: z.string().min(1) }),
      z.object({ do: z.literal("mode"), mode: z.enum(["steer", "queue"]) }),
    ]),
  }),
  output: z.object({ changed: z.boolean() }),
});

export const inboxFlush = request({
  subject: "store.inbox.flush",
  server: "store",
  clients: ["channel-gateway"],
  doc: "End the waiting of a session's `coalesce` rows for more of their kind.",
  input: z.object({ sessionId: z.string() }),
  output: z.object({ flushed: z.number().int() }),
});

export const inboxReady = z.object({
  sessionId: z.string(),
  priority: z.number().int(),
  /** Milliseconds from now at which the row's window ends; left out: now. */
  afterMs: z.number().int().nonnegative().optional(),
  /** The trust of input that may join a running turn; left out: it is none that may. */
  steers: z.string().optional(),
});
