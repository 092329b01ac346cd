// Changes of sessions in the native API: open, resume, fork, rename, archive, override and compact.
import {
  controlCompact,
  efforts,
  mainSessionKey,
  permissionModes,
  queueModes,
  SessionSummarySchema,
} from "@parley/contracts";
import { z } from "zod";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { HttpError } from "./errors.ts";
import { keyHeader, operationRef } from "./operation-ref.ts";
import { requireSession, SessionParams } from "./sessions.ts";

/** The route to bind: a session's key, such as `main` or `telegram:default:42`. */
const route = z.string().min(1).max(600).default(mainSessionKey);
const title = z.string().trim().min(1).max(200);

const SessionBody = z.discriminatedUnion("action", [
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
    /** Id, key or exact title. */
    session: z.string().min(1).max(600),
  }),
  z.strictObject({
    action: z.literal("fork"),
    /** Id or key of the original. */
    session: z.string().min(1).max(600),
    /** Omitted: no route is bound to the copy. */
    route: z.string().min(1).max(600).optional(),
    title: title.optional(),
    /** Turns that extend beyond this position are not copied. */
    atSeq: z.number().int().positive().optional(),
  }),
]);

/** Omitted fields stay unchanged; null removes an override. */
const ChangeBody = z.strictObject({
  title: title.optional(),
  status: z.enum(["active", "archived"]).optional(),
  overrides: z
    .strictObject({
      model: z.string().min(1).max(200).nullable(),
      effort: z.enum(efforts).nullable(),
      permissionMode: z.enum(permissionModes).nullable(),
      queueMode: z.enum(queueModes).nullable(),
    })
    .partial()
    .optional(),
});

const One = z.object({ session: SessionSummarySchema });

export function sessionChangeRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  const { acts } = deps.inbound;
  endpoints.add(
    {
      method: "POST",
      url: "/api/sessions",
      summary: "Open, resume or copy a session, and bind a route to it",
      headers: keyHeader,
      body: SessionBody,
      answers: {
        200: { description: "The session", schema: One },
        409: { description: "ambiguous: several sessions have this title" },
      },
    },
    async ({ body, request }) => {
      const ref = operationRef(request);
      switch (body.action) {
        case "new":
          return { session: (await acts.open(body.route, body, ref)).session };
        case "fork": {
          const original = await requireSession(deps, body.session);
          return { session: await acts.fork(original.sessionId, body, ref) };
        }
        default: {
          const bound = await acts.resume(body.route, body.session);
          if (bound.outcome === "found") return { session: bound.session };
          if (bound.outcome === "not_found") {
            throw new HttpError(404, "not_found", `there is no session "${body.session}"`);
          }
          const ids = bound.sessions.map(({ sessionId }) => sessionId).join(", ");
          throw new HttpError(409, "ambiguous", `several sessions have the title "${body.session}": ${ids}`);
        }
      }
    },
  );

  endpoints.add(
    {
      method: "PATCH",
      url: "/api/sessions/:id",
      summary: "Change a session's title, status or overrides",
      params: SessionParams,
      body: ChangeBody,
      answers: { 200: { description: "The changed session", schema: One } },
    },
    async ({ params, body }) => {
      let session = await requireSession(deps, params.id);
      const { sessionId } = session;
      // Overrides may be refused, so they are applied first.
      if (body.overrides !== undefined) session = await acts.override(sessionId, body.overrides);
      if (body.title !== undefined) session = await acts.rename(sessionId, body.title);
      if (body.status !== undefined) session = await acts.archive(sessionId, body.status === "archived");
      return { session };
    },
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/sessions/:id/compact",
      summary: "Compact the conversation for the model; during a turn, at its end",
      params: SessionParams,
      body: z.strictObject({
        /** What the summary must keep. */
        instructions: z.string().min(1).max(4_000).optional(),
      }),
      answers: { 200: { description: "The result", schema: controlCompact.output } },
    },
    async ({ params, body }) => {
      const { sessionId } = await requireSession(deps, params.id);
      return acts.compact(sessionId, body.instructions);
    },
  );
}
