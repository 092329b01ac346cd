// Slash commands about the conversation that they are sent in. Programs use the operations on sessions instead.
import { z } from "zod";
import { count, SessionRef } from "./fields.ts";
import { slashOperation } from "./operation.ts";

export const sessionsStop = slashOperation({
  name: "sessions.stop",
  role: "guest",
  scope: "talk",
  session: "id",
  input: z.strictObject({ id: SessionRef, all: z.boolean().default(false) }),
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

export const sessionsModel = slashOperation({
  name: "sessions.model",
  role: "owner",
  audit: ["id", "value"],
  session: "id",
  input: z.strictObject({ id: SessionRef, value: z.string().max(200).optional() }),
  slash: [{ form: "/model", arguments: choice }],
});

export const sessionsEffort = slashOperation({
  name: "sessions.effort",
  role: "owner",
  session: "id",
  input: Choice,
  slash: [{ form: "/effort", arguments: choice }],
});

export const sessionsMode = slashOperation({
  name: "sessions.mode",
  role: "owner",
  audit: ["id", "value"],
  session: "id",
  input: Choice,
  slash: [{ form: "/mode", arguments: choice }],
});

export const sessionsWorkspace = slashOperation({
  name: "sessions.workspace",
  role: "owner",
  audit: ["id", "value"],
  session: "id",
  input: Choice,
  slash: [{ form: "/workspace", arguments: choice }],
});

export const sessionsCompactSoon = slashOperation({
  name: "sessions.compact_soon",
  role: "user",
  session: "id",
  input: z.strictObject({ id: SessionRef, instructions: z.string().max(4_000).optional() }),
  slash: [
    {
      form: "/compact",
      arguments: [{ field: "instructions", rest: true, optional: true }],
      group: "owner",
    },
  ],
});

export const todosList = slashOperation({
  name: "todos.list",
  role: "user",
  session: "id",
  input: z.strictObject({ id: SessionRef }),
  slash: [{ form: "/todo" }],
});

export const conversationStatus = slashOperation({
  name: "sessions.status",
  role: "guest",
  session: "id",
  input: z.strictObject({ id: SessionRef }),
  slash: [{ form: "/status" }],
});

export const conversationMore = slashOperation({
  name: "sessions.more",
  role: "guest",
  input: z.strictObject({}),
  slash: [{ form: "/more" }],
});

export const usageCost = slashOperation({
  name: "usage.cost",
  role: "owner",
  session: "id",
  input: z.strictObject({
    id: SessionRef,
    show: z.enum(["both", "session", "days"]),
    days: count(1, 90).default(1),
  }),
  slash: [
    { form: "/cost", set: { show: "both" } },
    { form: "/cost session", set: { show: "session" } },
    { form: "/cost today", set: { show: "days" } },
    { form: "/cost days", arguments: [{ field: "days", optional: true }], set: { show: "days", days: 7 } },
  ],
});
