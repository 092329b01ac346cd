// Sessions of the native API: the list, one of them, its messages, and the stop of what it does.
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
        /** The `before` of the next page: the id of the last session of this one. */
        before: z.uuid().optional(),
        status: z.enum(["active", "archived"]).optional(),
        /** Sub-agents that this session has started, by its id. */
        parent: z.uuid().optional(),
        /** Sub-agents' sessions as well. */
        subagents: z.enum(["true", "false"]).default("false"),
        /** Sessions of single calls as well: `parley run`, `--once`, API calls that name no conversation. */
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
    async ({ params }) => ({ session: await existing(deps, params.id) }),
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
        200: { description: "As many as fit; `more` says whether others follow", schema: store.sessionMessages.output },
      },
    },
    async ({ params, query }) => {
      const { sessionId } = await existing(deps, params.id);
      return deps.bus.request(store.sessionMessages, { sessionId, afterSeq: query.after, limit: query.limit });
    },
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/sessions/:id/cancel",
      summary: "Stop what a session does",
      params: SessionParams,
      body: z.strictObject({
        /** Only this turn; without it whichever runs. */
        turnId: z.uuid().optional(),
        /** Also take back what waits behind it. */
        queued: z.boolean().default(false),
        /** Also stop sub-agents that it does not wait for. */
        background: z.boolean().default(false),
      }),
      answers: { 200: { description: "What was stopped", schema: store.turnCancel.output } },
    },
    async ({ params, body }) => {
      const { sessionId } = await existing(deps, params.id);
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
export async function existing(deps: HttpDeps, idOrKey: string): Promise<SessionSummary> {
  const session = await deps.sessions.find(idOrKey);
  if (session === null) throw new HttpError(404, "not_found", `there is no session "${idOrKey}"`);
  return session;
}
