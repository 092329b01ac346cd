// What waits in a session, in the native API: seen, changed, taken back, let through.
import { store } from "@parley/contracts";
import { z } from "zod";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { HttpError } from "./errors.ts";
import { existing, SessionParams } from "./sessions.ts";

const RowParams = SessionParams.extend({ messageId: z.uuid() });
const maxRows = 100;

const ChangeBody = z
  .strictObject({ text: z.string().min(1).optional(), mode: z.enum(["steer", "queue"]).optional() })
  .refine(({ text, mode }) => text !== undefined || mode !== undefined, "give text or mode");

export function queueRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  const { bus, live } = deps;
  /** Not done where the row waits no more, or is another session's. */
  const change = async (id: string, inboxId: string, changes: Parameters<typeof one>[1][]) => {
    const { sessionId } = await existing(deps, id);
    const row = await bus.request(store.inboxGet, { inboxId });
    if (row.sessionId !== sessionId) throw new HttpError(404, "not_found", `no message ${inboxId} in this session`);
    for (const each of changes) await one(inboxId, each);
    live.look();
  };
  const one = async (
    inboxId: string,
    to: { do: "cancel" } | { do: "text"; text: string } | { do: "mode"; mode: "steer" | "queue" },
  ) => {
    const { changed } = await bus.request(store.inboxEdit, { inboxId, change: to });
    if (!changed) throw new HttpError(409, "not_waiting", "the message does not wait any more");
  };

  endpoints.add(
    {
      method: "GET",
      url: "/api/sessions/:id/queue",
      summary: "What waits in a session, in the order in which it will be served",
      params: SessionParams,
      answers: { 200: { description: "The messages", schema: store.inboxList.output } },
    },
    async ({ params }) => {
      const { sessionId } = await existing(deps, params.id);
      return bus.request(store.inboxList, { sessionId, limit: maxRows });
    },
  );

  endpoints.add(
    {
      method: "PATCH",
      url: "/api/sessions/:id/queue/:messageId",
      summary: "Give a message that waits another text or another mode",
      params: RowParams,
      body: ChangeBody,
      answers: {
        200: { description: "Changed", schema: z.object({ changed: z.literal(true) }) },
        409: { description: "not_waiting: a turn has begun with it, or it was taken back" },
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
      summary: "Take a message back that waits",
      params: RowParams,
      answers: {
        200: { description: "Taken back", schema: z.object({ cancelled: z.literal(true) }) },
        409: { description: "not_waiting: a turn has begun with it, or it was taken back" },
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
      summary: "End the waiting of coalescing messages for more of their kind",
      params: SessionParams,
      answers: { 200: { description: "How many were let through", schema: store.inboxFlush.output } },
    },
    async ({ params }) => {
      const { sessionId } = await existing(deps, params.id);
      return bus.request(store.inboxFlush, { sessionId });
    },
  );
}
