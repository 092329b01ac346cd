// Sessions of the native API that are made, changed, put aside and led to; and a conversation made shorter.
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
import { existing, SessionParams } from "./sessions.ts";

/** The route that is led elsewhere: a session's key, such as `main` or `telegram:default:42`. */
const route = z.string().min(1).max(600).default(mainSessionKey);
const title = z.string().trim().min(1).max(200);

const SessionBody = z.discriminatedUnion("action", [
  z.strictObject({
    action: z.literal("new"),
    route,
    title: title.optional(),
    /** What the route led to is archived. */
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
    /** Left out: no route leads to the copy. */
    route: z.string().min(1).max(600).optional(),
    title: title.optional(),
    /** Turns that go beyond this position are left out. */
    atSeq: z.number().int().positive().optional(),
  }),
]);

/** What is left out stays, null takes a change back. */
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
      summary: "Begin a new session, go on with one that is there, or copy one; a route leads to it from then on",
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
          const original = await existing(deps, body.session);
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
      summary: "Change a session's title, put it aside, or change what holds for it alone",
      params: SessionParams,
      body: ChangeBody,
      answers: { 200: { description: "The session as it is now", schema: One } },
    },
    async ({ params, body }) => {
      let session = await existing(deps, params.id);
      const { sessionId } = session;
      // What may be refused comes first.
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
      summary: "Make the conversation shorter for the model; while a turn runs, at its end",
      params: SessionParams,
      body: z.strictObject({
        /** What the summary shall keep. */
        instructions: z.string().min(1).max(4_000).optional(),
      }),
      answers: { 200: { description: "What was done", schema: controlCompact.output } },
    },
    async ({ params, body }) => {
      const { sessionId } = await existing(deps, params.id);
      return acts.compact(sessionId, body.instructions);
    },
  );
}
