// Operations on queued messages.
import { z } from "zod";
import { inboxFlush, inboxList } from "../store/inbox.ts";
import { SessionRef } from "./fields.ts";
import { operation, slashOperation } from "./operation.ts";

const queued = { id: SessionRef, messageId: z.uuid() };
const notWaiting = "not_waiting: a turn has started with it, or it was cancelled";

export const queueList = operation({
  name: "queue.list",
  summary: "The queued messages of a session, in processing order",
  role: "guest",
  session: "id",
  input: z.strictObject({ id: SessionRef }),
  output: inboxList.output,
  http: { method: "GET", path: "/api/sessions/:id/queue", answers: { 200: "The messages" } },
});

export const queueChange = operation({
  name: "queue.change",
  summary: "Change the text or the mode of a queued message",
  role: "owner",
  session: "id",
  input: z
    .strictObject({ ...queued, text: z.string().min(1).optional(), mode: z.enum(["steer", "queue"]).optional() })
    .refine(({ text, mode }) => text !== undefined || mode !== undefined, "text or mode is required"),
  output: z.object({ changed: z.literal(true) }),
  http: {
    method: "PATCH",
    path: "/api/sessions/:id/queue/:messageId",
    answers: { 200: "Changed", 409: notWaiting },
  },
});

export const queueCancel = operation({
  name: "queue.cancel",
  summary: "Cancel a queued message",
  role: "owner",
  session: "id",
  input: z.strictObject(queued),
  output: z.object({ cancelled: z.literal(true) }),
  http: {
    method: "DELETE",
    path: "/api/sessions/:id/queue/:messageId",
    answers: { 200: "Cancelled", 409: notWaiting },
  },
});

export const queueFlush = operation({
  name: "queue.flush",
  summary: "End the coalescing window of queued messages",
  role: "owner",
  session: "id",
  input: z.strictObject({ id: SessionRef }),
  output: inboxFlush.output,
  http: { method: "POST", path: "/api/sessions/:id/queue/flush", answers: { 200: "The number of released messages" } },
});

/** A message by its number in the list, or by its id. */
const listed = { field: "message", label: "number or id" } as const;
const ownMessages = "Only the owner may change messages of other people.";

export const queueShow = slashOperation({
  name: "queue.show",
  role: "guest",
  session: "id",
  input: z.strictObject({
    id: SessionRef,
    action: z.enum(["list", "cancel", "edit"]),
    message: z.string().optional(),
    text: z.string().optional(),
  }),
  slash: [
    { form: "/queue", set: { action: "list" } },
    { form: "/queue list", set: { action: "list" } },
    { form: "/queue cancel", arguments: [listed], set: { action: "cancel" }, condition: ownMessages },
    {
      form: "/queue edit",
      arguments: [listed, { field: "text", rest: true }],
      set: { action: "edit" },
      condition: ownMessages,
    },
  ],
});

export const queueMode = slashOperation({
  name: "queue.mode",
  role: "owner",
  session: "id",
  input: z.strictObject({ id: SessionRef, mode: z.string().toLowerCase() }),
  slash: [{ form: "/queue mode", arguments: [{ field: "mode" }] }],
});

/** With a text these commands are messages (`parse-input.ts` of the gateway), so only the one without a text is executed. */
export const queueText = slashOperation({
  name: "queue.text",
  role: "guest",
  input: z.strictObject({ text: z.string() }),
  slash: [
    {
      form: "/steer",
      arguments: [{ field: "text", rest: true }],
      condition: "The message joins only a turn of the same role; otherwise it starts its own turn later.",
    },
    { form: "/later", arguments: [{ field: "text", rest: true }] },
    {
      form: "/now",
      arguments: [{ field: "text", rest: true }],
      condition: "The owner stops any turn; others only a turn they started. The message is stored in either case.",
    },
  ],
});
