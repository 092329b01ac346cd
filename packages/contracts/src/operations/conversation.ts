// Slash commands about the conversation that they are sent in. Programs use the operations on sessions instead.
import { z } from "zod";
import { count, SessionRef, TextAnswer } from "./fields.ts";
import { operation } from "./operation.ts";

export const sessionsStop = operation({
  name: "sessions.stop",
  summary: "Stop the running turn and queued messages, and report or end background processes",
  role: "guest",
  session: "id",
  input: z.strictObject({ id: SessionRef, all: z.boolean().default(false) }),
  output: TextAnswer,
  slash: [
    {
      form: "/stop",
      condition:
        "The owner stops any turn and cancels every queued message. Others stop only a turn they started and cancel only their own messages.",
    },
    { form: "/stop all", set: { all: true }, direct: "owner" },
  ],
});

const Choice = z.strictObject({ id: SessionRef, value: z.string().toLowerCase().optional() });
const choice = [{ field: "value", label: "value", optional: true }] as const;

export const sessionsModel = operation({
  name: "sessions.model",
  summary: "Show or set the model of a session",
  role: "owner",
  session: "id",
  input: z.strictObject({ id: SessionRef, value: z.string().max(200).optional() }),
  output: TextAnswer,
  slash: [{ form: "/model", arguments: choice }],
});

export const sessionsEffort = operation({
  name: "sessions.effort",
  summary: "Show or set the reasoning effort of a session",
  role: "owner",
  session: "id",
  input: Choice,
  output: TextAnswer,
  slash: [{ form: "/effort", arguments: choice }],
});

export const sessionsMode = operation({
  name: "sessions.mode",
  summary: "Show or set what the agent may do without approval in a session",
  role: "owner",
  session: "id",
  input: Choice,
  output: TextAnswer,
  slash: [{ form: "/mode", arguments: choice }],
});

export const sessionsCompactSoon = operation({
  name: "sessions.compact_soon",
  summary: "Compact the conversation for the model, without waiting for a long compaction",
  role: "user",
  session: "id",
  input: z.strictObject({ id: SessionRef, instructions: z.string().max(4_000).optional() }),
  output: TextAnswer,
  slash: [
    {
      form: "/compact",
      arguments: [{ field: "instructions", rest: true, optional: true }],
      group: "owner",
    },
  ],
});

export const todosList = operation({
  name: "todos.list",
  summary: "The agent's todo list of a session",
  role: "user",
  session: "id",
  input: z.strictObject({ id: SessionRef }),
  output: TextAnswer,
  slash: [{ form: "/todo" }],
});

export const conversationStatus = operation({
  name: "sessions.status",
  summary: "The state of a conversation",
  role: "guest",
  session: "id",
  input: z.strictObject({ id: SessionRef }),
  output: TextAnswer,
  slash: [{ form: "/status" }],
});

export const usageCost = operation({
  name: "usage.cost",
  summary: "The cost of model calls, of a session or by day",
  role: "owner",
  session: "id",
  input: z.strictObject({
    id: SessionRef,
    show: z.enum(["both", "session", "days"]),
    days: count(1, 90).default(1),
  }),
  output: TextAnswer,
  slash: [
    { form: "/cost", set: { show: "both" } },
    { form: "/cost session", set: { show: "session" } },
    { form: "/cost today", set: { show: "days" } },
    { form: "/cost days", arguments: [{ field: "days", optional: true }], set: { show: "days", days: 7 } },
  ],
});
