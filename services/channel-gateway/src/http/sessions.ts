// Sessions in the native API: list, read, messages, and cancel.
import { SessionSummarySchema, store, type SessionSummary } from "@parley/contracts";
import { z } from "zod";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { HttpError } from "./errors.ts";

export const SessionParams = z.object({ id: z.string().min(1).max(600) });
const wholeNumber = z.coerce.number().int().min(0);

export function sessionRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  endpoints.add(
    {
      method: "GET",
      url: "/api/sessions",
      summary: "Sessions, most recently used first",
      query: z.strictObject({
        limit: wholeNumber.pipe(z.number().min(1).max(200)).default(50),
        /** For the next page: the id of the last session of this page. */
        before: z.uuid().optional(),
        status: z.enum(["active", "archived"]).optional(),
        /** Only sub-agents of the session with this id. */
        parent: z.uuid().optional(),
        /** Also include sessions of sub-agents. */
        subagents: z.enum(["true", "false"]).default("false"),
        /** Also include sessions of single calls: `parley run`, `--once`, API calls without a conversation. */
        calls: z.enum(["true", "false"]).default("false"),
        /** Part of the title. */
        text: z.string().min(1).max(200).optional(),
      }),
      answers: { 200: { description: "The sessions", schema: store.sessionList.output } },
    },
    ({ query }) =>
      deps.bus.request(store.sessionList, {
        limit: query.limit,
        subagents: query.subagents === "true",
        calls: query.calls === "true",
        ...(query.before === undefined ? {} : { before: query.before }),
        ...(query.status === undefined ? {} : { status: query.status }),
        ...(query.parent === undefined ? {} : { parentId: query.parent }),
        ...(query.text === undefined ? {} : { text: query.text }),
      }),
  );

  endpoints.add(
    {
      method: "GET",
      url: "/api/sessions/:id",
      summary: "One session, by id or key",
      params: SessionParams,
      answers: { 200: { description: "The session", schema: z.object({ session: SessionSummarySchema }) } },
    },
    async ({ params }) => ({ session: await requireSession(deps, params.id) }),
  );

  endpoints.add(
    {
      method: "GET",
      url: "/api/sessions/:id/messages",
      summary: "Messages of a session after a position, in order",
      params: SessionParams,
      query: z.strictObject({
        after: wholeNumber.default(0),
        limit: wholeNumber.pipe(z.number().min(1).max(1_000)).default(200),
      }),
      answers: {
        200: { description: "As many as fit; `more`: further messages follow", schema: store.sessionMessages.output },
      },
    },
    async ({ params, query }) => {
      const { sessionId } = await requireSession(deps, params.id);
      return deps.bus.request(store.sessionMessages, { sessionId, afterSeq: query.after, limit: query.limit });
    },
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/sessions/:id/cancel",
      summary: "Stop the running turn of a session",
      params: SessionParams,
      body: z.strictObject({
        /** Only this turn; omitted: the running turn. */
        turnId: z.uuid().optional(),
        /** Also cancel queued messages. */
        queued: z.boolean().default(false),
        /** Also stop sub-agents that run in the background. */
        background: z.boolean().default(false),
      }),
      answers: { 200: { description: "The stopped turns", schema: store.turnCancel.output } },
    },
    async ({ params, body }) => {
      const { sessionId } = await requireSession(deps, params.id);
      return deps.inbound.cancel({
        sessionId,
        queued: body.queued,
        background: body.background,
        ...(body.turnId === undefined ? {} : { turnId: body.turnId }),
      });
    },
  );
}

/** Throws HttpError 404. */
export async function requireSession(deps: HttpDeps, idOrKey: string): Promise<SessionSummary> {
  const session = await deps.sessions.find(idOrKey);
  if (session === null) throw new HttpError(404, "not_found", `there is no session "${idOrKey}"`);
  return session;
}
