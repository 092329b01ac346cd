// Sessions and their logs.
import { z } from "zod";
import { DurableEventSchema } from "../events.ts";
import { UsageSchema } from "../messages.ts";
import { efforts } from "../settings/agent.ts";
import { permissionModes, ruleLists } from "../settings/permissions.ts";
import { queueModes } from "../settings/queue.ts";
import { MessageSchema } from "../messages.ts";
import { FallbackModelsSchema, HistorySchema, SessionStateSchema, SessionSummarySchema } from "../turns.ts";
import { ProgramAgentsSchema } from "../program-agents.ts";
import { ProgramToolsSchema } from "../program-tools.ts";
import { ViewRecordSchema } from "../view-record.ts";
import { Empty, Fenced, optionalOpId, storeRequest } from "./shared.ts";

export const sessionGet = storeRequest({
  subject: "store.session.get",
  clients: ["channel-gateway", "agent-core"],
  doc: "Get one session, by id or by its route (its key, unless the route was bound to another session).",
  input: z.object({ sessionId: z.string().optional(), key: z.string().optional() }),
  output: z.object({ session: SessionSummarySchema.nullable() }),
});

export const sessionActivities = ["running", "waiting", "queued", "idle"] as const;

const SessionMatchSchema = z.object({
  sessionId: z.string(),
  /** Position of the message in the session's log. */
  seq: z.number().int(),
  role: z.enum(["user", "assistant"]),
  /** ISO 8601, UTC. */
  createdAt: z.string(),
  /** The text around the first word that was found; `…` where it is cut. */
  excerpt: z.string(),
});
export type SessionMatch = z.infer<typeof SessionMatchSchema>;

export const sessionList = storeRequest({
  subject: "store.session.list",
  clients: ["channel-gateway", "agent-core"],
  doc: "List sessions, most recently used first. A session without a title gets the beginning of its first message as title. Sessions of sub-agents and of single calls are included only on request. All conditions must hold.",
  input: z.object({
    limit: z.number().int().min(1).max(200),
    /** The id of the last session of the previous page. */
    before: z.uuid().optional(),
    status: z.enum(["active", "archived"]).optional(),
    /** Only sub-agents that this session started. */
    parentId: z.uuid().optional(),
    /** Include sub-agents of all sessions. */
    subagents: z.boolean().optional(),
    /** Include sessions of single calls: `parley run`, `--once`, API calls without a conversation. */
    calls: z.boolean().optional(),
    /** Part of the title, case-insensitive. */
    text: z.string().min(1).max(200).optional(),
    /** Also find `text` in messages of people and of the agent: all of its words, each in full or by its beginning. */
    messages: z.boolean().optional(),
    /** `running`: a turn is running. `waiting`: its turn waits for a person or a sub-agent. `queued`: messages wait. `idle`: none of these. */
    activity: z.enum(sessionActivities).optional(),
    /** Sessions with input of this channel. */
    channel: z.string().min(1).max(100).optional(),
    /** Sessions with input of a person whose id, or part of whose name, this is. */
    person: z.string().min(1).max(200).optional(),
  }),
  output: z.object({
    sessions: z.array(SessionSummarySchema),
    /** With `messages`: the newest message that contains the words, of each session in which one does. */
    matches: z.array(SessionMatchSchema).optional(),
    /** With `parentId`: the tool calls that gave these sub-agents their tasks. */
    tasks: z.array(z.object({ sessionId: z.string(), callId: z.string() })).optional(),
  }),
});

export const sessionMessages = storeRequest({
  subject: "store.session.messages",
  clients: ["channel-gateway", "agent-core"],
  doc: "List messages of a session after a position, in order, as many as fit in one reply. With `beforeSeq`, the newest messages before that position instead.",
  input: z.object({
    sessionId: z.string(),
    afterSeq: z.number().int(),
    beforeSeq: z.number().int().optional(),
    limit: z.number().int().min(1).max(1000),
  }),
  output: HistorySchema,
});

export const eventList = storeRequest({
  subject: "store.event.list",
  clients: ["channel-gateway"],
  doc: "List durable events of a session after a position, in order, as many as fit in one reply.",
  input: z.object({ sessionId: z.string(), afterSeq: z.number().int(), limit: z.number().int().min(1).max(1000) }),
  output: z.object({ events: z.array(DurableEventSchema), more: z.boolean() }),
});

export const sessionUpdate = storeRequest({
  subject: "store.session.update",
  clients: ["channel-gateway", "agent-core"],
  doc: "Change the title, the status or the overrides of a session. Absent fields stay unchanged; null removes an override. Changes apply from the next model call; those that are made while tools run, from the call after it. CONFLICT for another `workspace` when the session has messages. A new message for an archived session makes it active again.",
  input: z.object({
    opId: optionalOpId,
    sessionId: z.string(),
    title: z.string().min(1).max(200).optional(),
    status: z.enum(["active", "archived"]).optional(),
    overrides: z
      .object({
        model: z.string().nullable(),
        effort: z.enum(efforts).nullable(),
        fallbackModels: FallbackModelsSchema.nullable(),
        permissionMode: z.enum(permissionModes).nullable(),
        queueMode: z.enum(queueModes).nullable(),
        voiceReplies: z.boolean().nullable(),
        allow: z.array(z.string()).nullable(),
        allowTainted: z.array(z.string()).nullable(),
        deny: z.array(z.string()).nullable(),
        ask: z.array(z.string()).nullable(),
        maxModelCalls: z.number().int().positive().nullable(),
        maxCostMicros: z.number().int().positive().nullable(),
        workspace: z.string().nullable(),
        start: z.null(),
        programTools: ProgramToolsSchema.nullable(),
        programAgents: ProgramAgentsSchema.nullable(),
      })
      .partial()
      .optional(),
    /** Adds or removes single rules of the lists in `overrides`, so that concurrent changes do not undo each other. */
    rules: z
      .object({ list: z.enum(ruleLists), action: z.enum(["add", "remove"]), rules: z.array(z.string()).min(1) })
      .optional(),
  }),
  output: z.object({ session: SessionSummarySchema.nullable() }),
});

export const sessionOpen = storeRequest({
  subject: "store.session.open",
  clients: ["channel-gateway"],
  doc: "Bind a route to a new session, which works in the same workspace as the route's previous one. If the route's session has no messages yet, it stays bound.",
  input: z.object({
    opId: z.uuid(),
    route: z.string().min(1).max(600),
    title: z.string().min(1).max(200).optional(),
    /** Archive the session that the route was bound to. */
    archive: z.boolean().optional(),
  }),
  output: z.object({
    session: SessionSummarySchema,
    /** The session that the route was bound to; null: none, or the same session. */
    previousId: z.string().nullable(),
  }),
});

export const sessionBind = storeRequest({
  subject: "store.session.bind",
  clients: ["channel-gateway"],
  doc: "Bind a route to an existing session; an archived session becomes active. Sub-agents' sessions cannot be bound.",
  input: z.object({
    route: z.string().min(1).max(600),
    /** Its id, the last eight digits of its id, its key, or its exact title, case-insensitive. */
    session: z.string().min(1).max(600),
  }),
  output: z.discriminatedUnion("outcome", [
    z.object({
      outcome: z.literal("found"),
      session: SessionSummarySchema,
      /** The session that the route was bound to; null: none, or the same session. */
      previousId: z.string().nullable(),
    }),
    /** Several sessions have this title; nothing was changed. */
    z.object({ outcome: z.literal("ambiguous"), sessions: z.array(SessionSummarySchema) }),
    z.object({ outcome: z.literal("not_found") }),
  ]),
});

export const sessionFork = storeRequest({
  subject: "store.session.fork",
  clients: ["channel-gateway"],
  doc: "Create a session from the view of another one: complete ended turns, the view record, the overrides and the prefix. Sub-agents stay with the original. If `atSeq` is before the current view, the fork gets the log as it was then. NOT_FOUND when there is no such session.",
  input: z.object({
    opId: z.uuid(),
    sessionId: z.uuid(),
    /** A route to bind to the fork. */
    route: z.string().min(1).max(600).optional(),
    title: z.string().min(1).max(200).optional(),
    /** Turns that extend beyond this position are left out. */
    atSeq: z.number().int().positive().optional(),
  }),
  output: z.object({ session: SessionSummarySchema }),
});

export const sessionView = storeRequest({
  subject: "store.session.view",
  clients: ["agent-core"],
  doc: "Get the state and messages of a session between two turns, like a claim without a turn. NOT_FOUND when there is no such session.",
  input: z.object({ epoch: z.number().int(), sessionId: z.string(), knownSeq: z.number().int() }),
  output: z.object({
    sessionKey: z.string(),
    session: SessionStateSchema,
    /** A turn is running or parked. */
    busy: z.boolean(),
    /** The newest turn; null: none. */
    turnId: z.string().nullable(),
    messages: z.array(MessageSchema),
    gap: z.boolean(),
  }),
});

/** A route was bound to another session: caches of the old binding are invalid. */
export const sessionBound = z.object({
  route: z.string(),
  sessionId: z.string(),
  /** Position of the session's log at that moment: later events are new for the route. */
  seq: z.number().int(),
});

/** The title, the status or the overrides of a session changed. */
export const sessionUpdated = z.object({ sessionId: z.string() });

export const sessionCompact = storeRequest({
  subject: "store.session.compact",
  clients: ["agent-core"],
  doc: "Replace a session's view record by one with the next version number (otherwise CONFLICT). The log itself does not change. Clears the session's prefix, so that the next turn sets system prompt and tools again.",
  input: z.object({
    ...Fenced,
    sessionId: z.string(),
    /** The turn during or after which the compaction ran. */
    turnId: z.string(),
    view: ViewRecordSchema,
    trigger: z.string(),
    /** Estimated prompt tokens. */
    tokensBefore: z.number().int().nonnegative(),
    tokensAfter: z.number().int().nonnegative(),
    /** Usage of the model call that wrote the summary. */
    usage: UsageSchema,
    costMicros: z.number().int().nonnegative().nullable(),
    model: z.string().nullable(),
  }),
  /** Position of the event `compacted`. */
  output: z.object({ seq: z.number().int() }),
});

export const prefixPut = storeRequest({
  subject: "store.prefix.put",
  clients: ["agent-core"],
  doc: "Store a system prompt and a list of tools under their hash. Sessions refer to it (`store.step.commit`, `store.turn.finish`).",
  input: z.object({ hash: z.string().length(64), content: z.string() }),
  output: Empty,
});

export const prefixGet = storeRequest({
  subject: "store.prefix.get",
  clients: ["agent-core"],
  doc: "Get the system prompt and the tools of a prefix hash.",
  input: z.object({ hash: z.string().length(64) }),
  output: z.object({ content: z.string().nullable() }),
});
