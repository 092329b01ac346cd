// Operations on sessions: list, read, start, resume, copy, change, stop and compact them.
import { z } from "zod";
import { controlCompact, controlStreaming } from "../control.ts";
import { ProgramAgentsSchema } from "../program-agents.ts";
import { ProgramToolsSchema } from "../program-tools.ts";
import { mainSessionKey } from "../session-keys.ts";
import { efforts } from "../settings/agent.ts";
import { permissionModes, permissionRule } from "../settings/permissions.ts";
import { queueModes } from "../settings/queue.ts";
import { sessionActivities, sessionList, sessionMessages } from "../store/sessions.ts";
import { turnCancel } from "../store/turns.ts";
import { FallbackModelsSchema, SessionSummarySchema } from "../turns.ts";
import { QuerySwitch, readOnly, sameOperation, SessionRef } from "./fields.ts";
import { operation } from "./operation.ts";

const One = z.object({ session: SessionSummarySchema });
const title = z.string().trim().min(1).max(200);
const position = z.coerce.number().int().min(0);
/** Permission rules such as `exec(git status)`; null: none. */
const rules = z.array(permissionRule).max(200).nullable();
const instructions = z.string().min(1).max(4_000).optional();

export const sessionsList = operation({
  name: "sessions.list",
  summary: "Sessions, most recently used first",
  role: "owner",
  input: z.strictObject({
    limit: position.pipe(z.number().min(1).max(200)).default(50),
    /** For the next page: the id of the last session of this page. */
    before: z.uuid().optional(),
    status: z.enum(["active", "archived"]).optional(),
    /** Only sub-agents of the session with this id. */
    parent: z.uuid().optional(),
    /** Also include sessions of sub-agents. */
    subagents: QuerySwitch.default("false"),
    /** Also include sessions of single calls: `parley run`, `--once`, API calls without a conversation. */
    calls: QuerySwitch.default("false"),
    /** Part of the title. */
    text: z.string().min(1).max(200).optional(),
    /** Also find the text in messages of people and of the agent: all of its words, each in full or by its beginning. */
    messages: QuerySwitch.default("false"),
    /** `waiting`: its turn waits for a person or a sub-agent. `queued`: messages wait for a turn. */
    activity: z.enum(sessionActivities).optional(),
    /** Sessions with messages from this channel. */
    channel: z.string().min(1).max(100).optional(),
    /** Sessions with messages of a person whose id, or part of whose name, this is. */
    person: z.string().min(1).max(200).optional(),
  }),
  output: sessionList.output,
  http: { method: "GET", path: "/api/sessions", answers: { 200: "The sessions" } },
  slash: [
    { form: "/session list", arguments: [{ field: "limit", label: "number", optional: true }], set: { limit: 20 } },
  ],
  mcp: {
    name: "list_sessions",
    title: "List Parley's sessions",
    description: "The agent's conversations, most recently used first.",
    input: z.strictObject({
      limit: z.number().int().min(1).max(100).default(20),
      text: z.string().min(1).max(200).optional().describe("Part of the title."),
    }),
    annotations: readOnly,
  },
});

export const sessionsGet = operation({
  name: "sessions.get",
  summary: "One session, by id or key",
  role: "guest",
  session: "id",
  input: z.strictObject({ id: SessionRef }),
  output: One,
  http: { method: "GET", path: "/api/sessions/:id", answers: { 200: "The session" } },
  slash: [{ form: "/session" }, { form: "/session show" }],
});

export const sessionsMessages = operation({
  name: "sessions.messages",
  summary: "Messages of a session after a position, in order",
  role: "owner",
  session: "id",
  input: z.strictObject({
    id: SessionRef,
    after: position.default(0),
    limit: position.pipe(z.number().min(1).max(1_000)).default(200),
  }),
  output: sessionMessages.output,
  http: {
    method: "GET",
    path: "/api/sessions/:id/messages",
    answers: { 200: "As many as fit; `more`: further messages follow" },
  },
});

export const sessionsStreaming = operation({
  name: "sessions.streaming",
  summary: "What the running model call of a session has written so far",
  role: "owner",
  session: "id",
  input: z.strictObject({ id: SessionRef }),
  output: controlStreaming.output,
  http: {
    method: "GET",
    path: "/api/sessions/:id/streaming",
    description:
      "For clients that join in the middle of an answer: live events before they joined are not repeated. `call` is null when no model call is writing.",
    answers: { 200: "The call" },
  },
});

export const sessionsRead = operation({
  name: "sessions.read",
  summary: "The texts of a session after a position",
  role: "owner",
  input: z.strictObject({
    session: SessionRef.describe("Id or key of the session, from list_sessions."),
    after: z.number().int().min(0).default(0).describe("Return messages after this position; 0 = from the beginning."),
    limit: z.number().int().min(1).max(100).default(50),
  }),
  output: z.object({ session: z.string(), messages: z.array(z.looseObject({})), next: z.number(), more: z.boolean() }),
  mcp: {
    name: "read_session",
    title: "Read a session of Parley",
    description: "The messages of a session after a position, in order. `next` is the position of the next page.",
    annotations: readOnly,
  },
});

export const sessionsCancel = operation({
  name: "sessions.cancel",
  summary: "Stop the running turn of a session",
  role: "owner",
  scope: "talk",
  session: "id",
  input: z.strictObject({
    id: SessionRef,
    /** Only this turn; omitted: the running turn. */
    turnId: z.uuid().optional(),
    /** Also cancel queued messages. */
    queued: z.boolean().default(false),
    /** Also stop sub-agents that run in the background. */
    background: z.boolean().default(false),
  }),
  output: turnCancel.output,
  http: { method: "POST", path: "/api/sessions/:id/cancel", answers: { 200: "The stopped turns" } },
  ws: [
    {
      subtype: "interrupt",
      input: z
        .strictObject({
          turn_id: z.uuid().optional(),
          queued: z.boolean().default(false),
          all: z.boolean().default(false),
        })
        .transform(({ turn_id: turnId, queued, all }) => ({ turnId, queued, background: all })),
      output: ["turns", "cancelledQueued"],
    },
  ],
});

/** The route to bind: a session's key, such as `main` or `<channel>:<account>:<conversation>`. */
const route = SessionRef.default(mainSessionKey);

const newSession = {
  arguments: [{ field: "title", rest: true, optional: true }],
  set: { action: "new" },
  group: "user",
} as const;

export const sessionsOpen = operation({
  name: "sessions.open",
  summary: "Open, resume or copy a session, and bind a route to it",
  role: "guest",
  session: "route",
  input: z.discriminatedUnion("action", [
    z.strictObject({
      action: z.literal("new"),
      route,
      title: title.optional(),
      /** Archive the previous session of the route. */
      archive: z.boolean().default(false),
    }),
    z.strictObject({
      action: z.literal("resume"),
      route,
      /** Number in the list of sessions (1 to 99), else the id, key or exact title. */
      session: SessionRef,
    }),
    z.strictObject({
      action: z.literal("fork"),
      /** Id or key of the original. */
      session: SessionRef,
      /** Omitted: no route is bound to the copy. */
      route: SessionRef.optional(),
      title: title.optional(),
      /** Turns that extend beyond this position are not copied. */
      atSeq: z.number().int().positive().optional(),
    }),
  ]),
  output: One,
  http: {
    method: "POST",
    path: "/api/sessions",
    key: sameOperation,
    answers: { 200: "The session", 409: "ambiguous: several sessions have this title" },
  },
  slash: [
    { form: "/new", ...newSession },
    { form: "/reset", ...newSession },
    { form: "/session new", ...newSession },
    {
      form: "/session fork",
      arguments: [{ field: "title", rest: true, optional: true }],
      set: { action: "fork" },
      session: ["route", "session"],
      group: "user",
    },
    {
      form: "/session resume",
      arguments: [{ field: "session", rest: true }],
      set: { action: "resume" },
      direct: "owner",
    },
  ],
});

export const sessionsChange = operation({
  name: "sessions.change",
  summary: "Change a session's title, status or overrides",
  role: "guest",
  audit: ["id", "overrides"],
  session: "id",
  input: z.strictObject({
    id: SessionRef,
    title: title.optional(),
    status: z.enum(["active", "archived"]).optional(),
    overrides: z // Omitted fields stay unchanged; null removes an override.
      .strictObject({
        model: z.string().min(1).max(200).nullable(),
        /** Models that replace it in this order when it fails, instead of those of the settings. */
        fallbackModels: FallbackModelsSchema.nullable(),
        effort: z.enum(efforts).nullable(),
        permissionMode: z.enum(permissionModes).nullable(),
        queueMode: z.enum(queueModes).nullable(),
        /** Permission rules of the session, in addition to those of the settings. A list replaces the previous one. */
        allow: rules,
        deny: rules,
        ask: rules,
        /** Limits of each turn, in addition to those of the settings: model calls, and cost in millionths of a US dollar. */
        maxModelCalls: z.number().int().positive().max(999_999).nullable(),
        maxCostMicros: z.number().int().positive().nullable(),
        /** A name in `[workspace.folders]`, before the first message. */
        workspace: z.string().max(40).nullable(),
        /** Tools that the program which drives the session runs itself, and sub-agents next to the profiles of the settings. */
        programTools: ProgramToolsSchema.nullable(),
        programAgents: ProgramAgentsSchema.nullable(),
      })
      .partial()
      .optional(),
  }),
  output: One,
  http: { method: "PATCH", path: "/api/sessions/:id", answers: { 200: "The changed session" } },
  slash: [{ form: "/session name", arguments: [{ field: "title", rest: true }], group: "user" }],
  ws: [
    {
      subtype: "set_model",
      input: z
        .strictObject({ model: z.string().min(1).max(200).nullable() })
        .transform(({ model }) => ({ overrides: { model } })),
    },
    {
      subtype: "set_permission_mode",
      input: z
        .strictObject({ mode: z.enum(permissionModes).nullable() })
        .transform(({ mode }) => ({ overrides: { permissionMode: mode } })),
    },
    {
      subtype: "set_effort",
      input: z
        .strictObject({ effort: z.enum(efforts).nullable() })
        .transform(({ effort }) => ({ overrides: { effort } })),
    },
  ],
});

export const sessionsCompact = operation({
  name: "sessions.compact",
  summary: "Compact the conversation for the model; during a turn, at its end",
  role: "owner",
  session: "id",
  input: z.strictObject({
    id: SessionRef,
    /** What the summary must keep. */
    instructions,
  }),
  output: controlCompact.output,
  http: { method: "POST", path: "/api/sessions/:id/compact", answers: { 200: "The result" } },
  ws: [{ subtype: "compact", input: z.strictObject({ instructions }) }],
});
