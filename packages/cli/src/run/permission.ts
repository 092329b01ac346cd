// Approval questions that the controlling program answers: sends `can_use_tool`, reads `control_response`. If an answer cannot be
// applied completely, the call is denied and the program gets an error response.

import { errorMessage } from "@parley/contracts";
import { z } from "zod";

import type { Gateway } from "../cluster/gateway.ts";
import type { ControlAnswer } from "./control.ts";

export interface PermissionQuestion {
  readonly request_id: string;
  readonly tool_name: string;
  readonly tool_use_id: string;
  readonly description: string;
  /** The call's arguments, if the gateway sends them. */
  readonly input?: unknown;
}

/** The program's answer to one question; `readDecision` validates `decision`. */
export interface PermissionAnswer {
  readonly requestId: string;
  /** Set if the program could not decide: the call is denied with this reason. */
  readonly failure: string | null;
  readonly decision: unknown;
}

export type Decision =
  | { decision: "allow"; always: boolean; updatedInput?: Record<string, unknown> }
  | { decision: "deny"; message?: string; interrupt?: boolean };

const toolUseId = { toolUseID: z.string().optional() };
const Answer = z.discriminatedUnion("behavior", [
  z.strictObject({
    behavior: z.literal("allow"),
    always: z.boolean().default(false),
    updatedInput: z.record(z.string(), z.unknown()).optional(),
    ...toolUseId,
  }),
  z.strictObject({
    behavior: z.literal("deny"),
    message: z.string().max(4_000).optional(),
    interrupt: z.boolean().default(false),
    ...toolUseId,
  }),
]);

/** The decision, or a text that names the field that cannot be applied. Pure. */
export function readDecision(answer: unknown, toolUseId: string): { decision: Decision } | { problem: string } {
  const parsed = Answer.safeParse(answer);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const place = ["response", ...(issue?.path ?? [])].join(".");
    return { problem: `${place}: ${issue?.message ?? "does not match"}` };
  }
  const { data } = parsed;
  if (data.toolUseID !== undefined && data.toolUseID !== toolUseId) {
    return { problem: `response.toolUseID: the question is about the call ${toolUseId}` };
  }
  if (data.behavior === "allow") {
    const { always, updatedInput } = data;
    if (always && updatedInput !== undefined) {
      return { problem: "response.always: an approval with updatedInput counts for this one call only" };
    }
    return { decision: { decision: "allow", always, ...(updatedInput === undefined ? {} : { updatedInput }) } };
  }
  const { message = "", interrupt } = data;
  return {
    decision: { decision: "deny", ...(message === "" ? {} : { message }), ...(interrupt ? { interrupt } : {}) },
  };
}

const Decided = z.looseObject({ outcome: z.string() });

export class PermissionQuestions {
  readonly #gateway: Pick<Gateway, "post">;
  /** The calls of sent questions, by request id. */
  readonly #open = new Map<string, string>();

  constructor(gateway: Pick<Gateway, "post">) {
    this.#gateway = gateway;
  }

  /** Builds the control request for a question. */
  ask({ request_id, tool_name, tool_use_id, description, input }: PermissionQuestion) {
    this.#open.set(request_id, tool_use_id);
    const request = { subtype: "can_use_tool", tool_name, tool_use_id, description, input: input ?? {} };
    return { type: "control_request", request_id, request } as const;
  }

  /** Sends the decision. Returns an error response to print, or null on success. Never rejects. */
  async answer({ requestId, failure, decision: answer }: PermissionAnswer): Promise<ControlAnswer | null> {
    const refused = (error: string): ControlAnswer => ({ subtype: "error", request_id: requestId, error });
    const toolUseId = this.#open.get(requestId);
    if (toolUseId === undefined) return refused(`no question with the id ${requestId} is open`);
    const read = failure === null ? readDecision(answer, toolUseId) : { problem: failure };
    const decision: Decision =
      "decision" in read ? read.decision : { decision: "deny", message: `The answer was not valid: ${read.problem}` };
    try {
      const { outcome } = await this.#gateway.post(`/api/approvals/${requestId}`, decision, Decided);
      this.#open.delete(requestId);
      if ("problem" in read) return refused(`${read.problem}; the call is denied`);
      return outcome === "decided" ? null : refused(`the question ${requestId} was already answered`);
    } catch (error) {
      return refused(errorMessage(error));
    }
  }
}
