// How a call of a round ends: the hooks on its result, the event that reports it, and what the round takes from it.
import type { HookOutcome, ToolResult, ToolStep } from "@parley/contracts";
import { stopText, type Verdict } from "../hooks/verdict.ts";
import { settleStep } from "./dispatch-call.ts";
import type { Round, RoundContext, RoundDeps } from "./tool-round.ts";

/** How much of a call's input and result live events contain, in characters. */
export const previewChars = 2_000;

export type CallEnd =
  | { end: "result"; result: ToolResult; notes: string[]; sleeps: boolean }
  | { end: "waiting"; until: string | null }
  /** `result`: of the denied call that ended the turn. */
  | { end: "stop"; text: string; result?: ToolResult };

/** A call with a result. */
export interface Ended {
  step: ToolStep;
  round: Round;
  result: ToolResult;
  /** Notes from the hooks before the call. */
  notes: string[];
  sleeps: boolean;
  /** Null: no event reports the end. */
  durationMs: number | null;
}

/** Runs the hooks on a result once, then publishes the result they return. */
export async function runPostToolHooks(
  deps: RoundDeps,
  context: RoundContext,
  { step, round, result, notes, sleeps, durationMs }: Ended,
  signal: AbortSignal,
): Promise<CallEnd> {
  const [tool = step.tool, ...aliases] = context.toolbox.namesOf(step.tool);
  const use = { tool, aliases, callId: step.callId, input: step.input };
  const verdict = result.isError
    ? await deps.runHooks("PostToolUseFailure", context.place, { ...use, error: result.content }, signal)
    : await deps.runHooks("PostToolUse", context.place, { ...use, output: result.content }, signal);
  const shown = rewrittenBy(verdict, result);
  const outcome = outcomeOf(verdict, tool);
  // Marked at once: a later leader does not run these hooks again.
  if (verdict.ran > 0) {
    await settleStep(deps, step, shown.isError ? "failed" : "done", shown, { hookOutcome: outcome });
    round.unsettled = round.unsettled.filter(({ n }) => n !== step.n);
  }
  round.released.push(step.n);
  if (durationMs !== null) publishFinished(context, step, shown, durationMs);
  return endAfterHooks(outcome, { result: shown, notes, sleeps });
}

/** Publishes the end of a call. */
export function publishFinished(
  { say }: RoundContext,
  { turnId, callId, tool }: ToolStep,
  { isError, content, isolation }: ToolResult,
  durationMs: number,
): void {
  say({
    type: "tool.finished",
    turnId,
    callId,
    tool,
    isError,
    content: content.slice(0, previewChars),
    durationMs: Math.round(durationMs),
    ...(isolation === undefined ? {} : { isolation }),
  });
}

/** What the outcome of the hooks on a result means for its call. */
export function endAfterHooks(
  { stop, notes }: HookOutcome,
  ended: { result: ToolResult; notes: readonly string[]; sleeps: boolean },
): CallEnd {
  if (stop !== undefined) return { end: "stop", text: stop };
  return { end: "result", ...ended, notes: [...ended.notes, ...notes] };
}

function outcomeOf(verdict: Verdict, tool: string): HookOutcome {
  const notes = [...verdict.contexts];
  if (verdict.continue === false) return { notes, stop: stopText(verdict) };
  if (verdict.decision === "deny") {
    notes.push(`About the result of ${tool}: ${verdict.reason ?? "rejected by a hook"}`);
  }
  return { notes };
}

function rewrittenBy({ suppressOutput, updatedOutput }: Verdict, result: ToolResult): ToolResult {
  const content = suppressOutput ? "[output suppressed by hook]" : updatedOutput;
  if (content === null) return result;
  const { attachments: _, ...withoutAttachments } = result;
  return { ...(suppressOutput ? withoutAttachments : result), content };
}
