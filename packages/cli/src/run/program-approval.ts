// Decides approval questions of a run: by the program's PreToolUse hooks, then by its permission callback.

import { errorMessage, reviewReason } from "@parley/contracts";

import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import { noVerdict, type HookVerdict, type ProgramHooks } from "./hooks.ts";
import type { Decision, PermissionQuestion, PermissionQuestions } from "./permission-questions.ts";

export interface ProgramApprovalDeps {
  readonly gateway: Pick<Gateway, "run">;
  readonly questions: PermissionQuestions;
  readonly hooks: ProgramHooks;
  /** The program has a permission callback. */
  readonly programApproves: boolean;
  /** Fields of every hook's input. */
  readonly hookContext: () => Readonly<Record<string, unknown>>;
  /** Writes a control request to the program. */
  readonly send: (request: object) => void;
  readonly note: (text: string) => void;
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

/** Decides one question, or sends it to the program. Never rejects. */
export async function decideForProgram(deps: ProgramApprovalDeps, question: PermissionQuestion): Promise<void> {
  const { gateway, questions, programApproves } = deps;
  const decision = afterHooks(await hookVerdict(deps, question), question.reason === reviewReason, programApproves);
  if (decision === "ask") {
    deps.send(questions.ask(question));
    return;
  }
  try {
    await gateway.run(api.decide, { id: question.request_id, ...decision });
  } catch (error) {
    deps.note(`the decision on ${question.tool_name} was not stored: ${errorMessage(error)}`);
  }
}

/** A hook that fails denies the call. */
async function hookVerdict({ hooks, hookContext }: ProgramApprovalDeps, question: PermissionQuestion) {
  const { tool_name: tool, tool_use_id: callId, input } = question;
  if (!hooks.has("PreToolUse", tool)) return noVerdict;
  try {
    const about = { ...hookContext(), tool_name: tool, tool_input: input ?? {}, tool_use_id: callId };
    return await hooks.call("PreToolUse", about, tool, callId);
  } catch (error) {
    return { ...noVerdict, decision: "deny", reason: `A hook of the program failed: ${errorMessage(error)}` } as const;
  }
}
