// Operations on tool calls that wait for a person's approval.
import { z } from "zod";
import { approvalDecide, approvalGet, approvalList } from "../store/approvals.ts";
import { count, readOnly, SessionRef } from "./fields.ts";
import { operation } from "./operation.ts";

const id = z.string().regex(/^[A-Za-z0-9]{4,12}$/, "is not a valid approval id");
const McpId = z.string().min(1).max(12).describe("Id of the approval, from approvals_list.");
const { approval, input: callInput } = approvalGet.output.shape;

export const approvalsList = operation({
  name: "approvals.list",
  summary: "Tool calls that wait for approval, newest first",
  role: "owner",
  input: z.strictObject({
    /** Omitted: all sessions. */
    session: SessionRef.optional(),
    /** `all`: also decided and expired approvals. */
    state: z.enum(["pending", "all"]).default("pending"),
    limit: count(1, 100).default(50),
  }),
  output: approvalList.output,
  http: { method: "GET", path: "/api/approvals", answers: { 200: "The approvals" } },
  slash: [{ form: "/approvals", set: { limit: 20 } }],
  mcp: {
    name: "approvals_list",
    title: "List approvals of Parley",
    description: "Tool calls that wait for a person's approval, newest first.",
    input: z
      .strictObject({
        pending: z.boolean().default(true).describe("Only pending approvals; false: also decided and expired ones."),
        limit: z.number().int().min(1).max(100).default(20),
      })
      .transform(({ pending, limit }) => ({ state: pending ? "pending" : "all", limit })),
    annotations: readOnly,
  },
});

export const approvalsGet = operation({
  name: "approvals.get",
  summary: "One approval, with the full arguments of the tool call",
  role: "owner",
  input: z.strictObject({ id }),
  output: z.object({ approval: approval.unwrap(), input: callInput }),
  http: {
    method: "GET",
    path: "/api/approvals/:id",
    answers: { 200: "The approval; `input`: the arguments as JSON text", 404: "not_found: no approval has this id" },
  },
  slash: [{ form: "/approvals", arguments: [{ field: "id" }] }],
  mcp: {
    name: "approval_get",
    title: "Show one approval of Parley",
    description:
      "One approval with its full text and the full arguments of the tool call. Use it when approvals_list hides characters.",
    input: z.strictObject({ id: McpId }),
    annotations: readOnly,
  },
});

const updatedInput = z.record(z.string(), z.unknown()).optional();
const message = z.string().min(1).max(4_000).optional();

export const approvalsDecide = operation({
  name: "approvals.decide",
  summary: "Approve or deny a tool call; the first decision counts",
  role: "owner",
  scope: "approve",
  audit: ["always", "id", "decision"],
  input: z
    .strictObject({
      id,
      decision: z.enum(["allow", "deny"]),
      /** Also allow similar calls in this session. */
      always: z.boolean().default(false),
      /** With `allow`: the arguments to run the call with, checked by the same rules as the call itself. Not with `always`. */
      updatedInput,
      /** With `deny`: the reason, which is sent to the model. */
      message,
      /** With `deny`: true also ends the turn. */
      interrupt: z.boolean().optional(),
    })
    .refine(({ decision, always }) => decision === "allow" || !always, {
      path: ["always"],
      error: "only valid with `allow`",
    })
    .refine(
      ({ decision, always, updatedInput: changed }) => changed === undefined || (decision === "allow" && !always),
      {
        path: ["updatedInput"],
        error: "only valid with `allow` and without `always`",
      },
    )
    .refine((each) => each.decision === "deny" || (each.message === undefined && each.interrupt !== true), {
      path: ["message, interrupt"],
      error: "only valid with `deny`",
    }),
  output: approvalDecide.output,
  http: {
    method: "POST",
    path: "/api/approvals/:id",
    answers: {
      200: "The current decision; `already`: decided earlier",
      409: "expired: not decided in time, so the call was denied",
    },
  },
  slash: [
    {
      form: "/approve",
      arguments: [{ field: "id" }, { field: "always", flag: "always" }],
      set: { decision: "allow" },
    },
    {
      form: "/deny",
      arguments: [{ field: "id" }, { field: "message", label: "reason", rest: true, optional: true }],
      set: { decision: "deny" },
    },
  ],
  ws: [
    {
      subtype: "approve",
      input: z
        .strictObject({ approval_id: id, always: z.boolean().default(false), updated_input: updatedInput })
        .transform((each) => ({
          id: each.approval_id,
          decision: "allow",
          always: each.always,
          updatedInput: each.updated_input,
        })),
    },
    {
      subtype: "deny",
      input: z
        .strictObject({ approval_id: id, message, interrupt: z.boolean().optional() })
        .transform(({ approval_id, ...rest }) => ({ id: approval_id, decision: "deny", ...rest })),
    },
  ],
  mcp: {
    name: "approval_decide",
    title: "Decide an approval of Parley",
    description: "Allow or deny one pending tool call. The first decision counts.",
    input: z
      .strictObject({
        id: McpId,
        allow: z.boolean(),
        always: z.boolean().default(false).describe("Also allow similar calls in this session from now on."),
        reason: message.describe("With `allow: false`: the reason, which the agent reads."),
      })
      .transform((each) => ({
        id: each.id,
        decision: each.allow ? "allow" : "deny",
        always: each.allow && each.always,
        ...(each.allow || each.reason === undefined ? {} : { message: each.reason }),
      })),
    annotations: { destructiveHint: true, idempotentHint: true, openWorldHint: false },
  },
});
