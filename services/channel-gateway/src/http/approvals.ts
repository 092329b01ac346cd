// Tool calls that wait for a yes, in the native API. The holder of the token is the owner.
import { store } from "@parley/contracts";
import { z } from "zod";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { HttpError } from "./errors.ts";
import { existing } from "./sessions.ts";

export const approvedBy = "owner (API)";

const approvalParams = z.object({ id: z.string().regex(/^[A-Za-z0-9]{4,12}$/, "is not the id of a question") });
const { approval: found, input: foundInput } = store.approvalGet.output.shape;
const FoundApproval = z.object({ approval: found.unwrap(), input: foundInput });
/** What an answer may add, in HTTP bodies; the WebSocket's control requests have the same in snake case. */
const decisionAdditions = {
  /** With `allow`: the arguments to run the call with. They are judged by the rules like the call itself. Not with `always`. */
  updatedInput: z.record(z.string(), z.unknown()).optional(),
  /** With `deny`: the reason, which the model reads. */
  message: z.string().min(1).max(4_000).optional(),
  /** With `deny`: true also ends the turn. */
  interrupt: z.boolean().optional(),
};

interface DecisionAdditions {
  updatedInput?: Record<string, unknown> | undefined;
  message?: string | undefined;
  interrupt?: boolean | undefined;
}

/** The optional fields of `store.approval.decide`. Throws HttpError 400 for a combination that cannot be honoured. */
export function readAdditions(allow: boolean, always: boolean, additions: DecisionAdditions) {
  const { updatedInput, message, interrupt } = additions;
  if (updatedInput !== undefined && (!allow || always)) {
    throw new HttpError(
      400,
      "invalid_request",
      "updatedInput: only an approval of this one call can change its arguments",
    );
  }
  if (allow && (message !== undefined || interrupt === true)) {
    throw new HttpError(400, "invalid_request", "message, interrupt: only a denial can have them");
  }
  return {
    ...(updatedInput === undefined ? {} : { updatedInput: JSON.stringify(updatedInput) }),
    ...(message === undefined ? {} : { message }),
    ...(interrupt === true ? { interrupt } : {}),
  };
}

export function approvalRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  endpoints.add(
    {
      method: "GET",
      url: "/api/approvals",
      summary: "Tool calls that wait for a yes, newest first",
      query: z.strictObject({
        /** Id or key; left out: of every session. */
        session: z.string().min(1).max(600).optional(),
        /** `all`: also those that were answered or are over. */
        state: z.enum(["pending", "all"]).default("pending"),
        limit: z.coerce.number().int().min(1).max(100).default(50),
      }),
      answers: { 200: { description: "The questions", schema: store.approvalList.output } },
    },
    async ({ query }) => {
      const of = query.session === undefined ? {} : { sessionId: (await existing(deps, query.session)).sessionId };
      return deps.bus.request(store.approvalList, { ...of, pending: query.state === "pending", limit: query.limit });
    },
  );

  endpoints.add(
    {
      method: "GET",
      url: "/api/approvals/:id",
      summary: "One question about a tool call, with the call's full arguments",
      params: approvalParams,
      answers: {
        200: { description: "The question; `input`: the arguments as JSON text", schema: FoundApproval },
        404: { description: "not_found: there is no such question" },
      },
    },
    async ({ params }) => {
      const { approval, input } = await deps.bus.request(store.approvalGet, { id: params.id });
      if (approval === null) throw new HttpError(404, "not_found", `there is no question ${params.id}`);
      return { approval, input };
    },
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/approvals/:id",
      summary: "Answer a question about a tool call; the first answer counts",
      params: approvalParams,
      body: z.strictObject({
        decision: z.enum(["allow", "deny"]),
        /** A yes also to calls like it, in this session. */
        always: z.boolean().default(false),
        ...decisionAdditions,
      }),
      answers: {
        200: { description: "What holds now; `already`: somebody was quicker", schema: store.approvalDecide.output },
        409: { description: "expired: nobody answered in time, which is a no" },
      },
    },
    async ({ params, body }) => {
      if (body.decision === "deny" && body.always) {
        throw new HttpError(400, "invalid_request", "always: only a yes can hold for calls like it");
      }
      const { updatedInput, message, interrupt } = body;
      const allow = body.decision === "allow";
      const additions = readAdditions(allow, body.always, { updatedInput, message, interrupt });
      const order = { id: params.id.toUpperCase(), allow, always: body.always, by: approvedBy, ...additions };
      const decided = await deps.bus.request(store.approvalDecide, order);
      if (decided.outcome === "not_found") throw new HttpError(404, "not_found", `there is no question ${params.id}`);
      if (decided.outcome === "expired") {
        throw new HttpError(409, "expired", `the question ${params.id} is over; nobody answered, which is a no`);
      }
      return decided;
    },
  );
}
