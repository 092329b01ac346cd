// Operations on the deployment: its state, the model, usage, deliveries and contacts; and the commands about commands.
import { z } from "zod";
import { controlModels } from "../control.ts";
import { PartSchema } from "../messages.ts";
import { ReplicaReportSchema } from "../health.ts";
import { contactRoles } from "../principals.ts";
import { permissionModes } from "../settings/permissions.ts";
import { pairingApprove, pairingList } from "../store/contacts.ts";
import { inboxGet } from "../store/inbox.ts";
import { outboxGet, outboxPut } from "../store/outbox.ts";
import { RequestRecordSchema, turnTrace } from "../store/trace.ts";
import { turnGet } from "../store/turns.ts";
import { usageGroups, usageReport } from "../store/usage.ts";
import { count, SessionRef } from "./fields.ts";
import { operation, slashOperation } from "./operation.ts";

/** A request in the format that all providers have in common. */
const SentRequestSchema = z.object({
  system: z.string(),
  /** Sorted by name. */
  tools: z.array(
    z.object({
      name: z.string(),
      description: z.string(),
      inputSchema: z.record(z.string(), z.unknown()),
      examples: z.array(z.record(z.string(), z.unknown())).optional(),
    }),
  ),
  messages: z.array(z.object({ role: z.enum(["user", "assistant"]), parts: z.array(PartSchema) })),
  parameters: RequestRecordSchema.shape.parameters,
});

export const commandsHelp = slashOperation({
  name: "commands.help",
  role: "guest",
  input: z.strictObject({ command: z.string().toLowerCase().optional() }),
  slash: [{ form: "/help", arguments: [{ field: "command", optional: true }] }],
});

export const commandsStart = slashOperation({
  name: "commands.start",
  role: "guest",
  input: z.strictObject({ payload: z.string().optional() }),
  slash: [
    {
      form: "/start",
      // Links of chat platforms can contain a payload.
      arguments: [{ field: "payload", rest: true, optional: true }],
    },
  ],
});

export const commandsList = operation({
  name: "commands.list",
  summary: "The slash commands",
  role: "owner",
  input: z.strictObject({}),
  output: z.object({
    /** In the order of /help. */
    commands: z.array(z.object({ name: z.string(), usage: z.string(), summary: z.string() })),
  }),
  http: { method: "GET", path: "/api/commands", answers: { 200: "The commands" } },
});

export const contactsSelf = slashOperation({
  name: "contacts.self",
  role: "guest",
  input: z.strictObject({}),
  slash: [{ form: "/whoami" }],
});

export const clusterStatus = operation({
  name: "cluster.status",
  summary: "The status of every replica, and the model",
  role: "owner",
  input: z.strictObject({}),
  output: z.object({
    version: z.string(),
    model: controlModels.output.nullable(),
    replicas: z.array(ReplicaReportSchema),
  }),
  http: { method: "GET", path: "/api/status", answers: { 200: "The replicas that responded" } },
});

/** Clients use it to start a stream in their own format. */
export const agentGet = operation({
  name: "agent.get",
  summary: "The agent: its model, tools and permission mode",
  role: "owner",
  input: z.strictObject({
    /** Id or key of a session, whose overrides are then included. */
    session: SessionRef.optional(),
  }),
  output: z.object({
    version: z.string(),
    /** Null: no agent-core is responding. */
    model: z.object({ provider: z.string(), model: z.string() }).nullable(),
    /** Sorted names; empty without an agent-core, and without the tools of tool-runners when none of these is responding. */
    tools: z.array(z.string()),
    /** One line on each tool, by its name. */
    toolSummaries: z.record(z.string(), z.string()),
    permissionMode: z.enum(permissionModes),
    /** Names of the MCP servers of the settings, connected or not. */
    mcpServers: z.array(z.string()),
    /** The isolation of commands; null: no tool-runner is responding. */
    workspace: z.string().nullable(),
    /** Names of the profiles of sub-agents. */
    profiles: z.array(z.string()),
  }),
  http: { method: "GET", path: "/api/agent", answers: { 200: "The agent" } },
});

export const usageGet = operation({
  name: "usage.get",
  summary: "Model calls, tokens and cost by day (UTC) and model, and their times by day",
  role: "owner",
  input: z.strictObject({
    /** Includes today; 1 = today only. */
    days: count(1, 366).default(1),
    /** Id or key of a session; omitted: all sessions. */
    session: SessionRef.optional(),
    /** Also sum by model, by session, or by the channel whose message began the work. */
    by: z.enum(usageGroups).optional(),
  }),
  output: usageReport.output,
  http: { method: "GET", path: "/api/usage", answers: { 200: "Costs in millionths of a US dollar" } },
});

export const messagesGet = operation({
  name: "messages.get",
  summary: "The state of a message",
  role: "owner",
  input: z.strictObject({ id: z.uuid() }),
  output: inboxGet.output.extend({ messageId: z.string() }),
  http: { method: "GET", path: "/api/messages/:id", answers: { 200: "Its state and, once started, its turn" } },
});

export const turnsGet = operation({
  name: "turns.get",
  summary: "One turn and its tool calls",
  role: "owner",
  input: z.strictObject({ id: z.uuid() }),
  output: turnGet.output,
  http: { method: "GET", path: "/api/turns/:id", answers: { 200: "The turn" } },
});

export const turnsTrace = operation({
  name: "turns.trace",
  summary: "When the parts of a turn began and ended",
  role: "owner",
  input: z.strictObject({ id: z.union([z.uuid(), z.literal("last")]) }),
  output: turnTrace.output,
  http: {
    method: "GET",
    path: "/api/turns/:id/trace",
    answers: { 200: "Queue, model calls, tool calls, approvals and sent texts; `last`: of the newest turn" },
  },
});

export const turnsRequest = operation({
  name: "turns.request",
  summary: "The request that one model call of a turn was sent",
  role: "owner",
  input: z.strictObject({
    id: z.uuid(),
    /** Number of the step within its turn, as in the trace. */
    step: count(1, 1_000_000),
  }),
  output: z.object({
    /** The model that answered. */
    model: z.string(),
    /** Whether it has the digest that was recorded when the request was sent. */
    exact: z.boolean(),
    /** Why it is not exact or not there; null: it is exact. */
    note: z.string().nullable(),
    /** Null: it cannot be built any more. */
    request: SentRequestSchema.nullable(),
  }),
  http: {
    method: "GET",
    path: "/api/turns/:id/requests/:step",
    answers: { 200: "The system prompt, the tools and the messages, in order; attachments by name and hash" },
  },
});

export const settingsGet = operation({
  name: "settings.get",
  summary: "The settings in effect, each with its origin, and problems of parley.toml",
  role: "owner",
  input: z.strictObject({}),
  output: z.object({
    settings: z.array(
      z.object({
        /** For example `limits.max_turns`. */
        key: z.string(),
        value: z.unknown(),
        /** A flag, a variable, the file, `preset <name>` or `default`. */
        origin: z.string(),
      }),
    ),
    /** What `parley config check` finds in parley.toml as it is now, and accounts that lack a secret. */
    problems: z.array(z.string()),
  }),
  http: {
    method: "GET",
    path: "/api/settings",
    answers: { 200: "Sorted by key. Secrets are named by their variable" },
  },
});

const hourMs = 60 * 60 * 1_000;

export const deliveriesSend = operation({
  name: "deliveries.send",
  summary: "Send a text to a conversation of a channel",
  role: "owner",
  input: z.strictObject({
    channel: z.string().min(1),
    account: z.string().min(1).default("default"),
    conversation: z.string().min(1).max(512),
    text: z.string().min(1),
    /** The text is dropped when it could not be sent within this time. */
    expiresInMs: z.number().int().min(1_000).max(86_400_000).default(hourMs),
  }),
  output: outboxPut.output,
  http: {
    method: "POST",
    path: "/api/send",
    key: "A repeated key is the same text.",
    answers: { 202: "Stored durably; texts of a conversation are sent in order" },
  },
});

export const deliveriesGet = operation({
  name: "deliveries.get",
  summary: "The delivery state of one text",
  role: "owner",
  input: z.strictObject({ id: z.string().regex(/^[0-9]{1,18}$/, "is not a valid delivery id") }),
  output: outboxGet.output,
  http: { method: "GET", path: "/api/outbox/:id", answers: { 200: "Its state" } },
});

export const pairingsList = operation({
  name: "pairings.list",
  summary: "People who requested access",
  role: "owner",
  input: z.strictObject({}),
  output: pairingList.output,
  http: { method: "GET", path: "/api/pairings", answers: { 200: "Open requests" } },
});

export const pairingsApprove = operation({
  name: "pairings.approve",
  summary: "Admit the person who received this code",
  role: "owner",
  audit: ["role"],
  input: z.strictObject({ code: z.string().min(4).max(64), role: z.enum(contactRoles).default("user") }),
  output: pairingApprove.output,
  http: { method: "POST", path: "/api/pairings/approve", answers: { 200: "The admitted contact" } },
});
