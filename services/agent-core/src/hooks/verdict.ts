// The merged verdict of the hooks of one event. Pure.
import type { HookOutput, HookPayload, HookResult, HookSettings } from "@parley/contracts";
import { jsonOr } from "./payloads.ts";

export interface Verdict {
  /** `false`: the turn ends here. `true`: a hook requested explicitly to continue. Null: neither. */
  continue: boolean | null;
  /** The strictest decision: deny, then ask, then allow. For `Stop`, deny means that the turn must not stop yet. */
  decision: "allow" | "deny" | "ask" | null;
  /** From the hook that decided. */
  reason: string | null;
  /** JSON text: arguments that replace the model's. */
  updatedInput: string | null;
  /** Text for the model that replaces the tool's output. */
  updatedOutput: string | null;
  /** Notes for the model, in the hooks' order. */
  contexts: readonly string[];
  /** The output is hidden from live events. */
  suppressOutput: boolean;
  /** With `continue: false`: the text for the user. */
  stopReason: string | null;
  /** Number of hooks that ran. */
  ran: number;
}

/** The outcome of one hook. */
export interface HookOutcome {
  name: string;
  onFailure: HookSettings["on_failure"];
  result: HookResult;
}

export const neutralVerdict: Verdict = Object.freeze({
  continue: null,
  decision: null,
  reason: null,
  updatedInput: null,
  updatedOutput: null,
  contexts: Object.freeze([]),
  suppressOutput: false,
  stopReason: null,
  ran: 0,
});

/** Merges outcomes in order, up to and including the first that ends the chain. */
export function mergeVerdicts(outcomes: readonly HookOutcome[]): Verdict {
  let verdict = neutralVerdict;
  for (const outcome of outcomes) {
    if (endsChain(verdict)) break;
    verdict = take(verdict, answerOf(outcome));
  }
  return verdict;
}

/** The text for the user when a hook ends the turn. */
export function stopText(verdict: Pick<Verdict, "stopReason" | "reason">): string {
  return `Stopped by a hook: ${verdict.stopReason ?? verdict.reason ?? "no reason given"}`;
}

/** No later hook can change this verdict. */
export function endsChain(verdict: Verdict): boolean {
  return verdict.continue === false || verdict.decision === "deny";
}

/** The payload for the next hook, including rewrites by the previous ones. */
export function rewritten(payload: HookPayload, verdict: Verdict): HookPayload {
  const { updatedInput, updatedOutput } = verdict;
  if (!("tool_input" in payload)) return payload;
  const next = updatedInput === null ? payload : { ...payload, tool_input: jsonOr(updatedInput) };
  if (updatedOutput === null) return next;
  if (next.hook_event_name === "PostToolUse") return { ...next, tool_response: updatedOutput };
  if (next.hook_event_name === "PostToolUseFailure") return { ...next, error: updatedOutput };
  return next;
}

const strictness = { allow: 1, ask: 2, deny: 3 } as const;

function take(verdict: Verdict, answer: HookOutput): Verdict {
  const { hookSpecificOutput: specific = {} } = answer;
  const decision = decisionOf(answer);
  const decides = decision !== null && strictness[decision] > strictnessOf(verdict.decision);
  return {
    continue: answer.continue ?? verdict.continue,
    decision: decides ? decision : verdict.decision,
    reason: decides ? (specific.permissionDecisionReason ?? answer.reason ?? null) : verdict.reason,
    updatedInput: specific.updatedInput === undefined ? verdict.updatedInput : JSON.stringify(specific.updatedInput),
    updatedOutput:
      specific.updatedToolOutput === undefined ? verdict.updatedOutput : asText(specific.updatedToolOutput),
    contexts: [...verdict.contexts, ...contextsOf(answer)],
    suppressOutput: verdict.suppressOutput || answer.suppressOutput === true,
    stopReason: answer.continue === false ? (answer.stopReason ?? null) : verdict.stopReason,
    ran: verdict.ran + 1,
  };
}

function answerOf({ name, onFailure, result }: HookOutcome): HookOutput {
  if (result.outcome === "answered") return result.answer;
  return onFailure === "open" ? {} : { decision: "deny", reason: `The hook ${name} failed: ${result.reason}.` };
}

function contextsOf({ hookSpecificOutput, systemMessage }: HookOutput): string[] {
  return [hookSpecificOutput?.additionalContext ?? "", systemMessage ?? ""].filter((text) => text.trim() !== "");
}

function decisionOf(answer: HookOutput): "allow" | "deny" | "ask" | null {
  const decision = answer.hookSpecificOutput?.permissionDecision ?? answer.decision;
  if (decision === "approve") return "allow";
  if (decision === "block") return "deny";
  return decision ?? null;
}

function strictnessOf(decision: Verdict["decision"]): number {
  return decision === null ? 0 : strictness[decision];
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
