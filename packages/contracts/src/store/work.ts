// The work of the whole cluster: what waits and since when, changes of the leader, and input that was given up.
import { z } from "zod";
import { SenderSchema } from "../messages.ts";
import { storeRequest } from "./shared.ts";

/** Rows that wait, and the time of the oldest one. */
const WaitingSchema = z.object({
  count: z.number().int(),
  /** ISO 8601, UTC; null: none waits. */
  oldestAt: z.string().nullable(),
});

const DeadLetterSchema = z.object({
  inboxId: z.string(),
  sessionId: z.string(),
  sessionTitle: z.string().nullable(),
  turnId: z.string().nullable(),
  /** The beginning of the message, at most 200 characters. */
  text: z.string(),
  from: SenderSchema,
  /** ISO 8601, UTC. */
  receivedAt: z.string(),
  /** When its turn was given up. */
  failedAt: z.string().nullable(),
  /** How often its turn was claimed. */
  attempts: z.number().int().nullable(),
});

export const workReport = storeRequest({
  subject: "store.work.report",
  clients: ["channel-gateway"],
  doc: "Report the work of the cluster: what waits, turns, the newest 50 takeovers, and the newest 50 dead letters that were not retried.",
  input: z.object({}),
  output: z.object({
    /** Input that waits for a turn. */
    inbox: WaitingSchema,
    /** Texts that wait for delivery. */
    outbox: WaitingSchema,
    /** Texts of the last day whose delivery is unknown. */
    unknownDeliveries: z.number().int(),
    turns: z.object({
      running: z.number().int(),
      /** Waiting for a person or a sub-agent. */
      parked: z.number().int(),
    }),
    /** Newest first. */
    takeovers: z.array(z.object({ epoch: z.number().int(), holder: z.string(), acquiredAt: z.string() })),
    /** Newest first. */
    deadLetters: z.array(DeadLetterSchema),
  }),
});

export const inboxRetry = storeRequest({
  subject: "store.inbox.retry",
  clients: ["channel-gateway"],
  doc: "Put the input of a dead letter into its session's queue again, at the end. A repeated request finds the row of the first one. NOT_FOUND when the input is not a dead letter, or was the task of a sub-agent, whose caller has its result.",
  input: z.object({ inboxId: z.uuid() }),
  output: z.object({
    inboxId: z.string(),
    sessionId: z.string(),
    /** It was queued by an earlier request. */
    repeated: z.boolean(),
  }),
});
