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
  /** JSON text of the arguments that the call ran with: hooks and people may have changed the model's. */
  input: string;
  /** Notes from the hooks before the call. */
  notes: string[];
  sleeps: boolean;
  /** Null: no event reports the end. */
  durationMs: number | null;
}

/** Runs the hooks on a result once; a refused call has not run, so they do not concern it. */
export async function runPostToolHooks(
  deps: RoundDeps,
  context: RoundContext,
  ended: Ended,
  signal: AbortSignal,
): Promise<CallEnd> {
  const { step, result, input } = ended;
  if (result.refused === true) return endCall(deps, context, ended, { notes: [] });
  const [tool = step.tool, ...aliases] = context.toolbox.namesOf(step.tool);
  const use = { tool, aliases, callId: step.callId, input };
  const verdict = result.isError
    ? await deps.runHooks("PostToolUseFailure", context.hookContext, { ...use, error: result.content }, signal)
    : await deps.runHooks("PostToolUse", context.hookContext, { ...use, output: result.content }, signal);
  return endCall(
    deps,
    context,
    { ...ended, result: rewrittenBy(verdict, result) },
    outcomeOf(verdict, tool),
    verdict.ran,
  );
}

/**
 * Publishes a result and stores what its hooks returned, unless nothing was: a later leader, or this one after the turn was parked,
 * does not run the hooks again. Published first: a leader that dies in between leaves an event too many, not one too few.
 */
export async function endCall(
  deps: RoundDeps,
  context: RoundContext,
  { step, round, result, notes, sleeps, durationMs }: Omit<Ended, "input">,
  hooks: HookOutcome,
  hooksRun = 0,
): Promise<CallEnd> {
  const outcome = { ...hooks, notes: [...notes, ...hooks.notes], ...(sleeps ? { sleeps } : {}) };
  if (durationMs !== null) publishFinished(context, step, result, durationMs);
  if (hooksRun > 0 || outcome.notes.length > 0 || sleeps) {
    await settleStep(deps, step, result.isError ? "failed" : "done", result, { hookOutcome: outcome });
    round.unsettled = round.unsettled.filter(({ n }) => n !== step.n);
  }
  round.released.push(step.n);
  return endOfStored(outcome, result);
}

/** Publishes the end of a call. */
function publishFinished(
  { publish }: RoundContext,
  { turnId, callId, tool }: ToolStep,
  { isError, content, isolation }: ToolResult,
  durationMs: number,
): void {
  publish({
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

/** The end of a call whose hooks have run. */
export function endOfStored({ stop, notes, sleeps = false }: HookOutcome, result: ToolResult): CallEnd {
  return stop === undefined ? { end: "result", result, notes, sleeps } : { end: "stop", text: stop };
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
