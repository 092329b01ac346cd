// The input of `parley run --input-format stream-json`: one JSON object per line; and the approval questions that the program answers. If an
// answer cannot be applied completely, the call is denied and the program gets an error response.

import { errorMessage } from "@parley/contracts";
import { omitUndefined, parseJson } from "@parley/kit";
import { z } from "zod";

import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import { firstIssue } from "../io/io.ts";
import type { ControlAnswer } from "./control.ts";

const TextBlock = z.object({ type: z.literal("text"), text: z.string() });

/** It becomes part of a path. */
const requestId = z.string().regex(/^[A-Za-z0-9]{1,32}$/);

const InputLine = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("user"),
    message: z.object({ role: z.literal("user"), content: z.union([z.string(), z.array(TextBlock)]) }),
  }),
  z.object({
    type: z.literal("control_request"),
    request_id: z.string(),
    request: z.looseObject({ subtype: z.string() }),
  }),
  /** The answer to an approval question. */
  z.object({
    type: z.literal("control_response"),
    response: z.union([
      z.strictObject({
        subtype: z.literal("success").optional(),
        request_id: requestId,
        // Validated together with its question.
        response: z.unknown(),
      }),
      z.strictObject({ subtype: z.literal("error"), request_id: requestId, error: z.string() }),
    ]),
  }),
]);

export type Input =
  | { kind: "user"; text: string }
  | { kind: "control"; id: string; request: ControlRequest }
  | { kind: "answer"; answer: PermissionAnswer }
  /** Invalid input; `id` if it was a request. */
  | { kind: "wrong"; problem: string };

export interface ControlRequest {
  readonly subtype: string;
  readonly [field: string]: unknown;
}

export function readInput(line: string): Input {
  const value = parseJson(line);
  if (value === undefined) return { kind: "wrong", problem: "a line of standard input is not valid JSON" };
  const parsed = InputLine.safeParse(value);
  if (!parsed.success) return { kind: "wrong", problem: `standard input: ${firstIssue(parsed.error)}` };
  const { data } = parsed;
  switch (data.type) {
    case "user": {
      const { content } = data.message;
      const text = typeof content === "string" ? content : content.map((block) => block.text).join("\n\n");
      return text.trim() === "" ? { kind: "wrong", problem: "the message contains no text" } : { kind: "user", text };
    }
    case "control_request":
      return { kind: "control", id: data.request_id, request: data.request };
    case "control_response": {
      const { response } = data;
      const failed = "error" in response;
      const answer = {
        requestId: response.request_id,
        failure: failed ? response.error : null,
        decision: failed ? null : response.response,
      };
      return { kind: "answer", answer };
    }
    default:
      return data satisfies never;
  }
}

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
    return { problem: firstIssue(parsed.error, "response") };
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
    return { decision: omitUndefined({ decision: "allow" as const, always, updatedInput }) };
  }
  const { message = "", interrupt } = data;
  return {
    decision: omitUndefined({
      decision: "deny" as const,
      message: message === "" ? undefined : message,
      interrupt: interrupt ? true : undefined,
    }),
  };
}

export class PermissionQuestions {
  readonly #gateway: Pick<Gateway, "run">;
  /** The calls of sent questions, by request id. */
  readonly #open = new Map<string, string>();

  constructor(gateway: Pick<Gateway, "run">) {
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
      const { outcome } = await this.#gateway.run(api.decide, { id: requestId, ...decision });
      this.#open.delete(requestId);
      if ("problem" in read) return refused(`${read.problem}; the call is denied`);
      return outcome === "decided" ? null : refused(`the question ${requestId} was already answered`);
    } catch (error) {
      return refused(errorMessage(error));
    }
  }
}
