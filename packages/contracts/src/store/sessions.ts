// Sessions and their logs, for people who look at them.
import { z } from "zod";
import { request } from "../contract.ts";
import { DurableEventSchema } from "../events.ts";
import { UsageSchema } from "../messages.ts";
import { efforts } from "../settings/agent.ts";
import { permissionModes } from "../settings/permissions.ts";
import { queueModes } from "../settings/queue.ts";
import { MessageSchema } from "../messages.ts";
import { HistorySchema, SessionStateSchema, SessionSummarySchema } from "../turns.ts";
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
  clients: ["channel-gateway", "agent-core"],
  doc: "Sessions, most recently used first. One without a title is given the beginning of its first message. Sessions of sub-agents and of single calls only where they are requested.",
  input: z.object({
    limit: z.number().int().min(1).max(200),
    /** The id of the last session of the page before. */
    before: z.uuid().optional(),
    status: z.enum(["active", "archived"]).optional(),
    /** Sub-agents that this session has started. */
    parentId: z.uuid().optional(),
    /** Sub-agents of every session as well. */
    subagents: z.boolean().optional(),
    /** Sessions of single calls as well: `parley run`, `--once`, API calls that name no conversation. */
    calls: z.boolean().optional(),
    /** Part of the title, whatever its case. */
    text: z.string().min(1).max(200).optional(),
  }),
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
        voiceReplies: z.boolean().nullable(),
        allow: z.array(z.string()).nullable(),
        allowTainted: z.array(z.string()).nullable(),
        deny: z.array(z.string()).nullable(),
        ask: z.array(z.string()).nullable(),
      })
      .partial()
      .optional(),
  }),
  output: z.object({ session: SessionSummarySchema.nullable() }),
});

export const sessionOpen = request({
  subject: "store.session.open",
  server: "store",
  clients: ["channel-gateway"],
  doc: "A route leads to a new session from now on. Where nothing was said in its session yet, that one is kept.",
  input: z.object({
    opId: z.uuid(),
    route: z.string().min(1).max(600),
    title: z.string().min(1).max(200).optional(),
    /** What the route led to is archived. */
    archive: z.boolean().optional(),
  }),
  output: z.object({
    session: SessionSummarySchema,
    /** What the route led to; null: nothing, or the same session. */
    previousId: z.string().nullable(),
  }),
});

export const sessionBind = request({
  subject: "store.session.bind",
  server: "store",
  clients: ["channel-gateway"],
  doc: "A route leads to a session that is there from now on; an archived one becomes active. Sub-agents' sessions are nobody's conversation.",
  input: z.object({
    route: z.string().min(1).max(600),
    /** Its id, the last eight digits of it, its key, or its exact title, whatever the case. */
    session: z.string().min(1).max(600),
  }),
  output: z.discriminatedUnion("outcome", [
    z.object({
      outcome: z.literal("found"),
      session: SessionSummarySchema,
      /** What the route led to; null: nothing, or the same session. */
      previousId: z.string().nullable(),
    }),
    /** Several have this title; nothing was changed. */
    z.object({ outcome: z.literal("ambiguous"), sessions: z.array(SessionSummarySchema) }),
    z.object({ outcome: z.literal("not_found") }),
  ]),
});

export const sessionFork = request({
  subject: "store.session.fork",
  server: "store",
  clients: ["channel-gateway"],
  doc: "A new session that begins with what the model is shown of another one: whole turns that have ended, the view record, the overrides, the prefix. Sub-agents stay with the original. Before `atSeq` of an earlier view: the log as it was. NOT_FOUND when there is no such session.",
  input: z.object({
    opId: z.uuid(),
    sessionId: z.uuid(),
    /** Leads to the fork from now on. */
    route: z.string().min(1).max(600).optional(),
    title: z.string().min(1).max(200).optional(),
    /** Turns that go beyond this position are left out. */
    atSeq: z.number().int().positive().optional(),
  }),
  output: z.object({ session: SessionSummarySchema }),
});

export const sessionArchive = request({
  subject: "store.session.archive",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Put a session aside, or take it back. A message that comes in for it takes it back as well.",
  input: z.object({ sessionId: z.string(), archived: z.boolean() }),
  output: z.object({ session: SessionSummarySchema.nullable() }),
});

export const sessionView = request({
  subject: "store.session.view",
  server: "store",
  clients: ["agent-core"],
  doc: "A session between two turns as the leader sees it: what a claim says, without a turn. NOT_FOUND when there is none.",
  input: z.object({ epoch: z.number().int(), sessionId: z.string(), knownSeq: z.number().int() }),
  output: z.object({
    sessionKey: z.string(),
    session: SessionStateSchema,
    /** A turn has not ended yet: it runs, or waits for somebody. */
    busy: z.boolean(),
    /** The newest turn; null: there was none. */
    turnId: z.string().nullable(),
    messages: z.array(MessageSchema),
    gap: z.boolean(),
  }),
});

/** A route leads to another session: who remembers where it led forgets it. */
export const sessionBound = z.object({
  route: z.string(),
  sessionId: z.string(),
  /** Position of the session's log at that moment: what comes after it is news on the route. */
  seq: z.number().int(),
});

/** What was changed for one session alone. */
export const sessionUpdated = z.object({ sessionId: z.string() });

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
  doc: "Keep a system prompt and a list of tools under their hash. Sessions name it (`store.step.commit`, `store.turn.finish`).",
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
