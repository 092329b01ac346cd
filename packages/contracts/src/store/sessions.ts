// Sessions and their logs, for people who look at them.
import { z } from "zod";
import { request } from "../contract.ts";
import { DurableEventSchema } from "../events.ts";
import { HistorySchema, SessionSummarySchema } from "../turns.ts";

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
