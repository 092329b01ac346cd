// Approvals in the native API. Every holder of the API token is the owner.
import { store } from "@parley/contracts";
import { z } from "zod";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { HttpError } from "./errors.ts";
import { requireSession } from "./sessions.ts";

export const approvedBy = "owner (API)";

const approvalParams = z.object({ id: z.string().regex(/^[A-Za-z0-9]{4,12}$/, "is not a valid approval id") });
const { approval: found, input: foundInput } = store.approvalGet.output.shape;
const FoundApproval = z.object({ approval: found.unwrap(), input: foundInput });
/** Optional fields of a decision in HTTP bodies; WebSocket control requests have the same fields in snake case. */
const decisionAdditions = {
  /** With `allow`: the arguments to run the call with, checked by the same rules as the call itself. Not with `always`. */
  updatedInput: z.record(z.string(), z.unknown()).optional(),
  /** With `deny`: the reason, which is sent to the model. */
  message: z.string().min(1).max(4_000).optional(),
  /** With `deny`: true also ends the turn. */
  interrupt: z.boolean().optional(),
};

interface DecisionAdditions {
  updatedInput?: Record<string, unknown> | undefined;
  message?: string | undefined;
  interrupt?: boolean | undefined;
}

/** Returns the optional fields of `store.approval.decide`. Throws HttpError 400 for an invalid combination. */
export function readAdditions(allow: boolean, always: boolean, additions: DecisionAdditions) {
  const { updatedInput, message, interrupt } = additions;
  if (updatedInput !== undefined && (!allow || always)) {
    throw new HttpError(400, "invalid_request", "updatedInput: only valid with `allow` and without `always`");
  }
  if (allow && (message !== undefined || interrupt === true)) {
    throw new HttpError(400, "invalid_request", "message, interrupt: only valid with `deny`");
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
      summary: "Tool calls that wait for approval, newest first",
      query: z.strictObject({
        /** Id or key of a session; omitted: all sessions. */
        session: z.string().min(1).max(600).optional(),
        /** `all`: also decided and expired approvals. */
        state: z.enum(["pending", "all"]).default("pending"),
        limit: z.coerce.number().int().min(1).max(100).default(50),
      }),
      answers: { 200: { description: "The approvals", schema: store.approvalList.output } },
    },
    async ({ query }) => {
      const of =
        query.session === undefined ? {} : { sessionId: (await requireSession(deps, query.session)).sessionId };
      return deps.bus.request(store.approvalList, { ...of, pending: query.state === "pending", limit: query.limit });
    },
  );

  endpoints.add(
    {
      method: "GET",
      url: "/api/approvals/:id",
      summary: "One approval, with the full arguments of the tool call",
      params: approvalParams,
      answers: {
        200: { description: "The approval; `input`: the arguments as JSON text", schema: FoundApproval },
        404: { description: "not_found: no approval has this id" },
      },
    },
    async ({ params }) => {
      const { approval, input } = await deps.bus.request(store.approvalGet, { id: params.id });
      if (approval === null) throw new HttpError(404, "not_found", `there is no approval ${params.id}`);
      return { approval, input };
    },
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/approvals/:id",
      summary: "Approve or deny a tool call; the first decision counts",
      params: approvalParams,
      body: z.strictObject({
        decision: z.enum(["allow", "deny"]),
        /** Also allow similar calls in this session. */
        always: z.boolean().default(false),
        ...decisionAdditions,
      }),
      answers: {
        200: { description: "The current decision; `already`: decided earlier", schema: store.approvalDecide.output },
        409: { description: "expired: not decided in time, so the call was denied" },
      },
    },
    async ({ params, body }) => {
      if (body.decision === "deny" && body.always) {
        throw new HttpError(400, "invalid_request", "always: only valid with `allow`");
      }
      const { updatedInput, message, interrupt } = body;
      const allow = body.decision === "allow";
      const additions = readAdditions(allow, body.always, { updatedInput, message, interrupt });
      const order = { id: params.id.toUpperCase(), allow, always: body.always, by: approvedBy, ...additions };
      const decided = await deps.bus.request(store.approvalDecide, order);
      if (decided.outcome === "not_found") throw new HttpError(404, "not_found", `there is no approval ${params.id}`);
      if (decided.outcome === "expired") {
        throw new HttpError(409, "expired", `the approval ${params.id} expired without an answer; the call was denied`);
      }
      return decided;
    },
  );
}
