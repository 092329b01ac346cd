// Decides approval questions of a run: by the program's PreToolUse hooks, then by its permission callback.

import { errorMessage, reviewReason, type SessionEvent } from "@parley/contracts";
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
  subagentQuestion,
} from "./permission-questions.ts";

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
  /** The run ends after this work. */
  readonly start: (work: Promise<void>) => void;
}

/** What to do with a question after the hooks: decide it, or ask the program. Pure. */
export function afterHooks(verdict: HookVerdict, reviewed: boolean, programApproves: boolean): Decision | "ask" {
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
  if (programApproves) return "ask";
  return { decision: "deny", message: "Nobody can approve this call: the program has no permission callback." };
}

/** The approval questions of a run and its sub-agents, as long as a program answers them. */
export class ProgramApprovals {
  readonly #deps: ProgramApprovalDeps;
  readonly #questions: PermissionQuestions;

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

  /** Handles an event of a sub-agent, whose questions are not messages of the stream. `sessionId`: of the sub-agent. */
  subagentEvent(event: SessionEvent, sessionId: string): void {
    if (event.type === "approval.requested") this.#deps.start(this.#decide(subagentQuestion(event, sessionId)));
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

  /** Decides one question, or sends it to the program. Never rejects. */
  async #decide(question: PermissionQuestion): Promise<void> {
    const { gateway, programApproves, send, note } = this.#deps;
    const verdict = await hookVerdict(this.#deps, question);
    const decision = afterHooks(verdict, question.reason === reviewReason, programApproves);
    if (decision === "ask") {
      send(this.#questions.ask(question));
      return;
    }
    try {
      await gateway.run(api.decide, { id: question.request_id, ...decision });
    } catch (error) {
      note(`the decision on ${question.tool_name} was not stored: ${errorMessage(error)}`);
    }
  }

  #withdraw(requestId: string): void {
    if (this.#questions.withdraw(requestId)) {
      this.#deps.send({ type: "control_cancel_request", request_id: requestId });
    }
  }
}

/** A hook that fails denies the call. */
async function hookVerdict({ hooks, hookContext }: ProgramApprovalDeps, question: PermissionQuestion) {
  const { tool_name: tool, tool_use_id: callId, input, agent_id } = question;
  if (!hooks.has("PreToolUse", tool)) return noVerdict;
  try {
    const about = { ...hookContext(), tool_name: tool, tool_input: input ?? {}, tool_use_id: callId };
    const ofAgent = agent_id === undefined ? {} : { agent_id };
    return await hooks.call("PreToolUse", { ...about, ...ofAgent }, tool, callId);
  } catch (error) {
    return { ...noVerdict, decision: "deny", reason: `A hook of the program failed: ${errorMessage(error)}` } as const;
  }
}
