// Sessions and their logs, for people who look at them.
import { z } from "zod";
import { request } from "../contract.ts";
import { DurableEventSchema } from "../events.ts";
import { UsageSchema } from "../messages.ts";
import { efforts } from "../settings/agent.ts";
import { permissionModes } from "../settings/permissions.ts";
import { queueModes } from "../settings/queue.ts";
import { HistorySchema, SessionSummarySchema } from "../turns.ts";
import { ViewRecordSchema } from "../view-record.ts";
import { Empty, Fenced } from "./shared.ts";

export const sessionGet = request({
  subject: "store.session.get",
  server: "store",
  clients: ["channel-gateway", "agent-core"],
  doc: "One session, by id or by the route that leads to it (its key, unless the route was bound to another session).",
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

export const sessionUpdate = request({
  subject: "store.session.update",
  server: "store",
  clients: ["channel-gateway", "agent-core"],
  doc: "Change what belongs to one session alone. What is left out stays; null takes an override back. It applies from the next model call.",
  input: z.object({
    sessionId: z.string(),
    title: z.string().min(1).max(200).optional(),
    overrides: z
      .object({
        model: z.string().nullable(),
        effort: z.enum(efforts).nullable(),
        permissionMode: z.enum(permissionModes).nullable(),
        queueMode: z.enum(queueModes).nullable(),
        allow: z.array(z.string()).nullable(),
        deny: z.array(z.string()).nullable(),
        ask: z.array(z.string()).nullable(),
      })
      .partial()
      .optional(),
  }),
  output: z.object({ session: SessionSummarySchema.nullable() }),
});

export const sessionCompact = request({
  subject: "store.session.compact",
  server: "store",
  clients: ["agent-core"],
  doc: "Show the model another part of the log from now on: a new view record, one version above the one it replaces (else CONFLICT). The log itself stays. Frees the session's prefix, so that the next turn fixes system prompt and tools anew.",
  input: z.object({
    ...Fenced,
    sessionId: z.string(),
    /** The turn in or after which it was made. */
    turnId: z.string(),
    view: ViewRecordSchema,
    trigger: z.string(),
    /** Prompt tokens, estimated. */
    tokensBefore: z.number().int().nonnegative(),
    tokensAfter: z.number().int().nonnegative(),
    /** Of the model call that summarised. */
    usage: UsageSchema,
    costMicros: z.number().int().nonnegative().nullable(),
    model: z.string().nullable(),
  }),
  /** Position of the event `compacted`. */
  output: z.object({ seq: z.number().int() }),
});

export const prefixPut = request({
  subject: "store.prefix.put",
  server: "store",
  clients: ["agent-core"],
  doc: "Keep a system prompt and a list of tools under their hash. Sessions name it (`store.step.commit`).",
  input: z.object({ hash: z.string().length(64), content: z.string() }),
  output: Empty,
});

export const prefixGet = request({
  subject: "store.prefix.get",
  server: "store",
  clients: ["agent-core"],
  doc: "What a session's model is sent before the conversation.",
  input: z.object({ hash: z.string().length(64) }),
  output: z.object({ content: z.string().nullable() }),
});
