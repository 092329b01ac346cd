// What came in: kept once, looked at, found by the sweep.
import { z } from "zod";
import { request } from "../contract.ts";
import { InboundMessageSchema } from "../inbound.ts";
import { TurnSummarySchema } from "../turns.ts";
import { LeaseRef } from "./shared.ts";

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

export const inboxReady = z.object({ sessionId: z.string(), priority: z.number().int() });
