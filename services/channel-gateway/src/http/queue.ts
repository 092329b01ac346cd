// Queued messages of a session in the native API: list, edit, cancel and flush.
import { store } from "@parley/contracts";
import { z } from "zod";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { HttpError } from "./errors.ts";
import { requireSession, SessionParams } from "./sessions.ts";

const RowParams = SessionParams.extend({ messageId: z.uuid() });
const maxRows = 100;

const ChangeBody = z
  .strictObject({ text: z.string().min(1).optional(), mode: z.enum(["steer", "queue"]).optional() })
  .refine(({ text, mode }) => text !== undefined || mode !== undefined, "text or mode is required");

export function queueRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  const { bus, live } = deps;
  /** Throws HttpError when the row is no longer queued or belongs to another session. */
  const change = async (id: string, inboxId: string, changes: Parameters<typeof one>[1][]) => {
    const { sessionId } = await requireSession(deps, id);
    const row = await bus.request(store.inboxGet, { inboxId });
    if (row.sessionId !== sessionId)
      throw new HttpError(404, "not_found", `there is no message ${inboxId} in this session`);
    for (const each of changes) await one(inboxId, each);
    live.refresh();
  };
  const one = async (
    inboxId: string,
    to: { do: "cancel" } | { do: "text"; text: string } | { do: "mode"; mode: "steer" | "queue" },
  ) => {
    const { changed } = await bus.request(store.inboxEdit, { inboxId, change: to });
    if (!changed) throw new HttpError(409, "not_waiting", "the message is no longer queued");
  };

  endpoints.add(
    {
      method: "GET",
      url: "/api/sessions/:id/queue",
      summary: "The queued messages of a session, in processing order",
      params: SessionParams,
      answers: { 200: { description: "The messages", schema: store.inboxList.output } },
    },
    async ({ params }) => {
      const { sessionId } = await requireSession(deps, params.id);
      return bus.request(store.inboxList, { sessionId, limit: maxRows });
    },
  );

  endpoints.add(
    {
      method: "PATCH",
      url: "/api/sessions/:id/queue/:messageId",
      summary: "Change the text or the mode of a queued message",
      params: RowParams,
      body: ChangeBody,
      answers: {
        200: { description: "Changed", schema: z.object({ changed: z.literal(true) }) },
        409: { description: "not_waiting: a turn has started with it, or it was cancelled" },
      },
    },
    async ({ params, body }) => {
      await change(params.id, params.messageId, [
        ...(body.text === undefined ? [] : [{ do: "text" as const, text: body.text }]),
        ...(body.mode === undefined ? [] : [{ do: "mode" as const, mode: body.mode }]),
      ]);
      return { changed: true };
    },
  );

  endpoints.add(
    {
      method: "DELETE",
      url: "/api/sessions/:id/queue/:messageId",
      summary: "Cancel a queued message",
      params: RowParams,
      answers: {
        200: { description: "Cancelled", schema: z.object({ cancelled: z.literal(true) }) },
        409: { description: "not_waiting: a turn has started with it, or it was cancelled" },
      },
    },
    async ({ params }) => {
      await change(params.id, params.messageId, [{ do: "cancel" }]);
      return { cancelled: true };
    },
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/sessions/:id/queue/flush",
      summary: "End the coalescing window of queued messages",
      params: SessionParams,
      answers: { 200: { description: "The number of released messages", schema: store.inboxFlush.output } },
    },
    async ({ params }) => {
      const { sessionId } = await requireSession(deps, params.id);
      return bus.request(store.inboxFlush, { sessionId });
    },
  );
}
