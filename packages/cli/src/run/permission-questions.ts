// Approval questions that a program answers. If an answer cannot be applied completely, the call is denied and the program gets an error
// response.

import { errorMessage, ownToolName, type SessionEvent } from "@parley/contracts";
import { omitUndefined, parseJson } from "@parley/kit";
import { z } from "zod";

import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import { firstIssue } from "../io/io.ts";
import type { ControlAnswer } from "./control.ts";
import type { ProgramAnswer } from "./input.ts";

export interface PermissionQuestion {
  readonly request_id: string;
  readonly tool_name: string;
  readonly tool_use_id: string;
  readonly description: string;
  readonly reason?: string;
  /** The call's arguments, if the gateway sends them. */
  readonly input?: unknown;
  /** The session and the profile of the sub-agent that makes the call. Omitted: the run itself makes it. */
  readonly agent_id?: string;
  readonly agent_type?: string;
}

/** The question of a sub-agent about a call of its own. */
export function subagentQuestion(
  event: Extract<SessionEvent, { type: "approval.requested" }>,
  { sessionId: agent_id, profile: agent_type }: { sessionId: string; profile: string },
): PermissionQuestion {
  const { approvalId: request_id, tool, callId: tool_use_id, summary: description, reason, input } = event;
  const args = input === undefined ? {} : { input: parseJson(input) };
  return { request_id, tool_name: ownToolName(tool), tool_use_id, description, reason, ...args, agent_id, agent_type };
}

export type Decision =
  | { decision: "allow"; always: boolean; updatedInput?: Record<string, unknown> }
  | { decision: "deny"; message?: string; interrupt?: boolean };

const common = {
  toolUseID: z.string().optional(),
  /** How the program decided, for its own records. */
  decisionClassification: z.unknown().optional(),
};
/** The one change of rules that an approval can carry: `always`, as offered in `permission_suggestions`. */
const Updates = z.array(z.looseObject({ type: z.string() })).optional();
const Answer = z.discriminatedUnion("behavior", [
  z.strictObject({
    behavior: z.literal("allow"),
    always: z.boolean().default(false),
    updatedInput: z.record(z.string(), z.unknown()).optional(),
    updatedPermissions: Updates,
    ...common,
  }),
  z.strictObject({
    behavior: z.literal("deny"),
    message: z.string().max(4_000).optional(),
    interrupt: z.boolean().default(false),
    ...common,
  }),
]);

/** The suggestion of a question: similar calls run without a question for the rest of the session. */
export function suggestionOf(tool: string) {
  return [{ type: "addRules", rules: [{ toolName: tool }], behavior: "allow", destination: "session" }] as const;
}

function isSuggestion(update: Readonly<Record<string, unknown>>): boolean {
  return update["type"] === "addRules" && update["behavior"] === "allow" && update["destination"] === "session";
}

function isSame(input: unknown, other: unknown): boolean {
  return JSON.stringify(input) === JSON.stringify(other);
}

/** The decision, or a text that names the field that cannot be applied. `input`: the arguments in question. Pure. */
export function readDecision(
  answer: unknown,
  toolUseId: string,
  input?: unknown,
): { decision: Decision } | { problem: string } {
  const parsed = Answer.safeParse(answer);
  if (!parsed.success) {
    return { problem: firstIssue(parsed.error, "response") };
  }
  const { data } = parsed;
  if (data.toolUseID !== undefined && data.toolUseID !== toolUseId) {
    return { problem: `response.toolUseID: the question is about the call ${toolUseId}` };
  }
  if (data.behavior === "allow") {
    const { updatedPermissions: updates = [] } = data;
    if (!updates.every(isSuggestion)) {
      return {
        problem:
          'response.updatedPermissions: only the suggestion of the question can be applied ("addRules", "allow", "session"); other rules belong to parley.toml',
      };
    }
    const always = data.always || updates.length > 0;
    // Callers often return the arguments unchanged.
    const updatedInput = isSame(data.updatedInput, input) ? undefined : data.updatedInput;
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

/** Whether the answer also ends the turn. */
export function interrupts({ decision }: ProgramAnswer): boolean {
  return typeof decision === "object" && decision !== null && "interrupt" in decision && decision.interrupt === true;
}

export class PermissionQuestions {
  readonly #gateway: Pick<Gateway, "run">;
  /** The calls of sent questions, by request id. */
  readonly #open = new Map<string, { call: string; input: unknown }>();

  constructor(gateway: Pick<Gateway, "run">) {
    this.#gateway = gateway;
  }

  /** Builds the control request for a question. */
  ask({ request_id, tool_name, tool_use_id, description, reason, input = {}, agent_id }: PermissionQuestion) {
    this.#open.set(request_id, { call: tool_use_id, input });
    const about = omitUndefined({ tool_name, tool_use_id, description, decision_reason: reason, input, agent_id });
    const request = { subtype: "can_use_tool", ...about, permission_suggestions: suggestionOf(tool_name) };
    return { type: "control_request", request_id, request } as const;
  }

  /** True if the program was asked this question and has not answered yet. */
  isOpen(requestId: string): boolean {
    return this.#open.has(requestId);
  }

  /** The questions that the program has not answered. */
  get openIds(): string[] {
    return [...this.#open.keys()];
  }

  /** Withdraws a question that was decided elsewhere; false if the program answered it or was not asked. */
  withdraw(requestId: string): boolean {
    return this.#open.delete(requestId);
  }

  /** Sends the decision. Returns an error response to print, or null on success. Never rejects. */
  async answer({ requestId, failure, decision: answer }: ProgramAnswer): Promise<ControlAnswer | null> {
    const refused = (error: string): ControlAnswer => ({ subtype: "error", request_id: requestId, error });
    const question = this.#open.get(requestId);
    if (question === undefined) return refused(`no question with the id ${requestId} is open`);
    const read = failure === null ? readDecision(answer, question.call, question.input) : { problem: failure };
    const decision: Decision =
      "decision" in read ? read.decision : { decision: "deny", message: `The answer was not valid: ${read.problem}` };
    this.#open.delete(requestId);
    try {
      const { outcome } = await this.#gateway.run(api.decide, { id: requestId, ...decision });
      if ("problem" in read) return refused(`${read.problem}; the call is denied`);
      return outcome === "decided" ? null : refused(`the question ${requestId} was already answered`);
    } catch (error) {
      this.#open.set(requestId, question);
      return refused(errorMessage(error));
    }
  }
}
