// Decides approval questions of a run: by the program's PreToolUse hooks, then by its permission callback.

import { errorMessage, reviewReason, type SessionEvent } from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import type { SdkMessage } from "@parley/projections";

import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import { noVerdict, type HookVerdict, type ProgramHooks } from "./hooks.ts";
import type { ControlAnswer } from "./control.ts";
import type { ProgramAnswer } from "./input.ts";
import {
  type Decision,
  interrupts,
  type PermissionQuestion,
  PermissionQuestions,
  readDecision,
  subagentQuestion,
  suggestionOf,
} from "./permission-questions.ts";
import type { Subagent } from "./subagents.ts";

export interface ProgramApprovalDeps {
  readonly gateway: Pick<Gateway, "run">;
  readonly hooks: ProgramHooks;
  /** The program has a permission callback. */
  readonly programApproves: boolean;
  /** Fields of every hook's input. */
  readonly hookContext: () => Readonly<Record<string, unknown>>;
  /** Writes a control request to the program. */
  readonly send: (request: object) => void;
  readonly note: (text: string) => void;
  /** Called when the program is asked about a call. */
  readonly asked: (tool: string) => void;
  /** The run waits for this work before it ends. */
  readonly start: (work: Promise<void>) => void;
}

/**
 * What to do with a question after the PreToolUse hooks: decide it, or ask the program. `canAsk`: the program has a permission callback or
 * a PermissionRequest hook for this tool. Pure.
 */
export function afterHooks(verdict: HookVerdict, reviewed: boolean, canAsk: boolean): Decision | "ask" {
  const { decision, reason, updatedInput, stop } = verdict;
  if (stop !== null) return { decision: "deny", message: stop, interrupt: true };
  if (decision === "deny") return { decision: "deny", message: reason ?? "A hook of the program denied this call." };
  if (decision === "allow" || (decision === null && reviewed)) {
    return {
      decision: "allow",
      always: false,
      ...(updatedInput === null ? {} : { updatedInput: { ...updatedInput } }),
    };
  }
  return canAsk ? "ask" : nobodyApproves;
}

const nobodyApproves = {
  decision: "deny",
  message: "Nobody can approve this call: the program has no permission callback.",
} as const;
const inputEnded = {
  decision: "deny",
  message: "Nobody can approve this call: the program has closed its input.",
} as const;

/** The decision of the PermissionRequest hooks, or null without one. Pure. */
function decisionOf(verdict: HookVerdict, { tool_use_id: callId, input }: PermissionQuestion): Decision | null {
  const { decision, reason, answer, stop } = verdict;
  if (stop !== null) return { decision: "deny", message: stop, interrupt: true };
  if (decision === null || decision === "ask") return null;
  const read = readDecision(answer ?? { behavior: decision, message: reason ?? undefined }, callId, input);
  return "decision" in read
    ? read.decision
    : { decision: "deny", message: `The answer of the hook was not valid: ${read.problem}` };
}

/** The approval questions of a run and its sub-agents, as long as a program answers them. */
export class ProgramApprovals {
  readonly #deps: ProgramApprovalDeps;
  readonly #questions: PermissionQuestions;
  /** Questions whose hooks run and that nobody has decided yet, by request id. */
  readonly #undecided = new Set<string>();
  #closed = false;

  constructor(deps: ProgramApprovalDeps) {
    this.#deps = deps;
    this.#questions = new PermissionQuestions(deps.gateway);
  }

  /** Handles a message of the stream; others than questions and decisions are ignored. */
  message(message: SdkMessage): void {
    if (message.type !== "system") return;
    if (message.subtype === "permission_request") this.#deps.start(this.#decide(message));
    if (message.subtype === "permission_decided") this.#withdraw(message.request_id);
  }

  /** Handles an event of a sub-agent, whose questions are not messages of the stream. */
  subagentEvent(event: SessionEvent, subagent: Pick<Subagent, "sessionId" | "profile">): void {
    if (event.type === "approval.requested") this.#deps.start(this.#decide(subagentQuestion(event, subagent)));
    if (event.type === "approval.decided") this.#withdraw(event.approvalId);
  }

  /** The answer is to an open question, and also ends the turn. */
  endsTurn(answer: ProgramAnswer): boolean {
    return this.#questions.isOpen(answer.requestId) && interrupts(answer);
  }

  /** Applies an answer of the program. Returns an error response to print, or null. Never rejects. */
  answer(answer: ProgramAnswer): Promise<ControlAnswer | null> {
    return this.#questions.answer(answer);
  }

  /** The program can no longer answer: open questions are denied, and so are those that follow. */
  close(): void {
    this.#closed = true;
    for (const id of this.#questions.openIds) {
      this.#questions.withdraw(id);
      this.#deps.start(this.#store(id, inputEnded));
    }
  }

  /** Decides one question, or sends it to the program. Never rejects. */
  async #decide(question: PermissionQuestion): Promise<void> {
    const { hooks, programApproves, send, asked } = this.#deps;
    const { tool_name: tool, request_id: id } = question;
    this.#undecided.add(id);
    const verdict = await this.#verdict("PreToolUse", question);
    const canAsk = programApproves || hooks.has("PermissionRequest", tool);
    const first = afterHooks(verdict, question.reason === reviewReason, canAsk);
    const decision = first === "ask" ? await this.#byRequestHooks(question) : first;
    const isDecidedElsewhere = !this.#undecided.delete(id);
    if (decision === null && !this.#closed) {
      if (isDecidedElsewhere) return;
      asked(tool);
      send(this.#questions.ask(question));
      return;
    }
    await this.#store(id, decision ?? inputEnded);
  }

  async #store(id: string, decision: Decision): Promise<void> {
    const { gateway, note } = this.#deps;
    try {
      await gateway.run(api.decide, { id, ...decision });
    } catch (error) {
      note(`the decision on the question ${id} was not stored: ${errorMessage(error)}`);
    }
  }

  /** Null: the permission callback decides. */
  async #byRequestHooks(question: PermissionQuestion): Promise<Decision | null> {
    const verdict = await this.#verdict("PermissionRequest", question);
    return decisionOf(verdict, question) ?? (this.#deps.programApproves ? null : nobodyApproves);
  }

  /** A hook that fails denies the call. */
  async #verdict(event: "PreToolUse" | "PermissionRequest", question: PermissionQuestion): Promise<HookVerdict> {
    const { hooks, hookContext } = this.#deps;
    const { tool_name: tool, tool_use_id: callId, input, agent_id, agent_type } = question;
    if (!hooks.has(event, tool)) return noVerdict;
    try {
      const about = { ...hookContext(), tool_name: tool, tool_input: input ?? {}, tool_use_id: callId };
      const more = event === "PermissionRequest" ? { permission_suggestions: suggestionOf(tool) } : {};
      const ofAgent = omitUndefined({ agent_id, agent_type });
      return await hooks.call(event, { ...about, ...more, ...ofAgent }, tool, callId);
    } catch (error) {
      return { ...noVerdict, decision: "deny", reason: `A hook of the program failed: ${errorMessage(error)}` };
    }
  }

  #withdraw(requestId: string): void {
    this.#undecided.delete(requestId);
    if (this.#questions.withdraw(requestId)) {
      this.#deps.send({ type: "control_cancel_request", request_id: requestId });
    }
  }
}
