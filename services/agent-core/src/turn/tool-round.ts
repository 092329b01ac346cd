// Runs the tool calls of one step:
//
//   per call   authorize → refuse · wait for a person · run (here or on a tool-runner) → hooks on the result
//   per step   groups by execution policy, launched one after the other; results in call order
//
// A call with a result in the store is not run again. A call that waits for somebody lets the others of its group
// finish.
import { maxResultBytesFor } from "@parley/bus";
import { faultPoint } from "@parley/chassis";
import type { HookOutcome, ToolResult, ToolStep } from "@parley/contracts";
import { type Permit } from "@parley/kit";
import type { LocalTool } from "../tools/local-tool.ts";
import { stopText, type Verdict } from "../hooks/verdict.ts";
import { roleOf, workspaceOf } from "../policy/workspace-access.ts";
import { authorizeToolCall, deniedPaths, type AuthorizationContext, type AuthorizationDeps } from "./authorize-call.ts";
import { callGroups } from "../tools/call-groups.ts";
import { dispatchToRunner, settle, settleStep, unsettledBytesFor, type ToolCallDeps } from "./dispatch-call.ts";
import type { TurnTool } from "../tools/toolbox.ts";
import { localContext, runLocal, type Ran } from "./local-tools.ts";
import { audienceOf, documentRights, isTainted } from "../policy/taint.ts";

export interface RoundDeps extends AuthorizationDeps, ToolCallDeps {}

export interface RoundContext extends AuthorizationContext {
  observer: {
    started(step: ToolStep, input: string): void;
    finished(step: ToolStep, result: ToolResult, durationMs: number): void;
  };
  /** The result of step `n` may be shown. `stored`: the store has it as the hooks returned it. */
  release(n: number, stored: boolean): void;
  /** Keeps the result of step `n`, which the store does not have yet, for the turn's next commit. */
  keep(n: number, state: "done" | "failed", result: ToolResult): void;
  /** Runs call `n` on a tool-runner; its MCP server may request sampling meanwhile. */
  withSampling<T>(n: number, tool: string, stop: AbortSignal, work: () => Promise<T>): Promise<T>;
  /** The turn's slot; released while a call on a tool-runner waits for a person. */
  slot: Pick<Permit, "release" | "acquire">;
  /** Whether input that may join the turn is waiting: calls that were not launched yet are skipped for it. */
  steered(): boolean;
}

export interface Round {
  /** In call order; calls that were not launched have none. */
  results: ToolResult[];
  /** Notes for the model, after the results. */
  notes: string[];
  /** Steps that wait for somebody, and the latest time to resume. */
  waitingFor: number[];
  wakeAt: string | null;
  /** Calls were skipped because input arrived. */
  skipped: boolean;
  /** A hook or a person ends the turn with this text. */
  stop: string | null;
  /** The agent called `sleep`. */
  sleeps: boolean;
}

type CallEnd =
  | { end: "result"; result: ToolResult; notes: string[]; sleeps: boolean }
  | { end: "waiting"; until: string | null }
  /** `result`: of the denied call that ended the turn. */
  | { end: "stop"; text: string; result?: ToolResult };

/** Rejects with the signal's reason once every running call was cancelled. */
export async function runToolRound(
  deps: RoundDeps,
  context: RoundContext,
  steps: readonly ToolStep[],
  signal: AbortSignal,
): Promise<Round> {
  const round: Round = {
    results: [],
    notes: [],
    waitingFor: [],
    wakeAt: null,
    skipped: false,
    stop: null,
    sleeps: false,
  };
  const calls = steps.map((step) => ({ step, tool: context.toolbox.find(step.tool)?.descriptor }));
  const room = { maxResultBytes: maxResultBytesFor(steps.length), unsettledBytes: unsettledBytesFor(steps.length) };
  for (const [index, group] of callGroups(
    calls,
    context.policy.execution,
    deps.settings.tools.max_parallel,
  ).entries()) {
    signal.throwIfAborted();
    const fresh = group.some(({ step }) => step.result === null && step.state === "intended");
    if (index > 0 && fresh && context.steered()) {
      round.skipped = true;
      break;
    }
    const ends = await Promise.allSettled(group.map(({ step }) => endOf(deps, context, { step, ...room }, signal)));
    await context.slot.acquire(signal);
    for (const [at, each] of ends.entries()) {
      if (each.status === "rejected") throw each.reason;
      take(round, group[at]?.step, each.value);
    }
    // Later calls may depend on results that are still missing.
    if (round.waitingFor.length > 0 || round.stop !== null) break;
  }
  return round;
}

function take(round: Round, step: ToolStep | undefined, end: CallEnd): void {
  if (step === undefined) return;
  switch (end.end) {
    case "waiting":
      round.waitingFor.push(step.n);
      if (end.until !== null && (round.wakeAt === null || end.until < round.wakeAt)) round.wakeAt = end.until;
      return;
    case "stop":
      round.stop ??= end.text;
      if (end.result !== undefined) round.results.push(end.result);
      return;
    default:
      round.results.push(end.result);
      round.notes.push(...end.notes);
      round.sleeps ||= end.sleeps;
  }
}

interface Launch {
  step: ToolStep;
  maxResultBytes: number;
  unsettledBytes: number;
}

async function endOf(deps: RoundDeps, context: RoundContext, launch: Launch, signal: AbortSignal): Promise<CallEnd> {
  const { step } = launch;
  if (step.result !== null && step.hookOutcome !== undefined) {
    context.release(step.n, true);
    return endAfterHooks(step.hookOutcome, { result: step.result, notes: [], sleeps: false });
  }
  // Settled before this leader took over: its hooks have not run.
  if (step.result !== null) {
    // Settled by another service while the turn was parked: no event has reported it yet.
    const durationMs = step.runner === "agent-core" ? sinceMs(step.startedAt) : null;
    return runPostToolHooks(deps, context, { step, result: step.result, notes: [], sleeps: false, durationMs }, signal);
  }
  const tool = context.toolbox.find(step.tool);
  if (tool === undefined) {
    const result = await settle(deps, step, "failed", context.toolbox.unknown(step.tool));
    context.release(step.n, false);
    context.observer.finished(step, result, 0);
    return { end: "result", result, notes: [], sleeps: false };
  }
  // Started already: a sub-agent works on it, or a person was asked.
  if (tool.local !== undefined && step.state === "running" && step.runner === "agent-core") {
    return resumeCall(deps, context, step, tool.local, signal);
  }
  const startedAt = performance.now();
  const permitted = await authorizeToolCall(deps, context, step, tool, signal);
  switch (permitted.verdict) {
    case "stop":
      return { end: "stop", text: permitted.text };
    case "wait":
      return { end: "waiting", until: permitted.until };
    case "refuse":
    case "interrupt": {
      const result = await settle(deps, step, "failed", permitted.content, { refused: true });
      context.release(step.n, false);
      const { turnId, callId } = step;
      context.say({ type: "tool.denied", turnId, callId, tool: step.tool, reason: permitted.content });
      context.observer.finished(step, result, performance.now() - startedAt);
      if (permitted.verdict === "interrupt") return { end: "stop", text: permitted.content, result };
      return { end: "result", result, notes: permitted.notes, sleeps: false };
    }
    default: {
      context.observer.started(step, permitted.input);
      faultPoint("agent.before_tool");
      const ran = await run(deps, context, { ...launch, tool, input: permitted.input }, signal);
      if ("until" in ran) return { end: "waiting", until: ran.until };
      const durationMs = performance.now() - startedAt;
      return runPostToolHooks(deps, context, { step, ...ran, notes: permitted.notes, durationMs }, signal);
    }
  }
}

/** `startedAt`: ISO 8601; 0 when null. */
function sinceMs(startedAt: string | null): number {
  return startedAt === null ? 0 : Math.max(0, Date.now() - Date.parse(startedAt));
}

/** Polls a call that waits for somebody when the turn resumes for another reason. */
async function resumeCall(
  deps: RoundDeps,
  context: RoundContext,
  step: ToolStep,
  local: LocalTool,
  signal: AbortSignal,
): Promise<CallEnd> {
  const { resume } = local;
  if (resume === undefined) return { end: "waiting", until: null };
  const ran = await runLocal(deps, context, step, () => resume(step.input, localContext(deps, context, step)));
  if ("until" in ran) return { end: "waiting", until: ran.until };
  const durationMs = sinceMs(step.startedAt);
  return runPostToolHooks(deps, context, { step, ...ran, notes: [], sleeps: false, durationMs }, signal);
}

async function run(
  deps: RoundDeps,
  context: RoundContext,
  call: Launch & { tool: TurnTool; input: string },
  signal: AbortSignal,
): Promise<Ran> {
  const { step, tool, input } = call;
  const { turn } = context;
  const { local, descriptor } = tool;
  if (local === undefined) {
    const limit = deps.settings.tools.max_result_chars;
    const { result, unsettled } = await context.withSampling(step.n, descriptor.name, signal, () =>
      dispatchToRunner(
        deps,
        {
          sessionId: turn.sessionId,
          rootTurnId: turn.root.turnId,
          audience: audienceOf(turn, context.heard),
          role: roleOf(turn.root.trust),
          workspace: workspaceOf(turn, deps.settings.workspace),
          tainted: isTainted(turn, context.heard),
          documents: documentRights(descriptor, audienceOf(turn, context.heard)),
          minIsolation: context.policy.minIsolation,
          denyPaths: deniedPaths(deps.settings, context, tool),
          // Tool-runners know tools by their own names only.
          step: { ...step, tool: descriptor.name },
          input,
          timeoutMs: descriptor.timeoutMs,
          asksMs: descriptor.asksMs ?? 0,
          asks: () => context.slot.release(),
          progress: (progress) =>
            context.say({ type: "tool.progress", turnId: turn.turnId, callId: step.callId, tool: step.tool, progress }),
          maxResultBytes: limit === 0 ? call.maxResultBytes : Math.min(limit, call.maxResultBytes),
          unsettledBytes: call.unsettledBytes,
        },
        signal,
      ),
    );
    if (unsettled !== null) context.keep(step.n, unsettled, result);
    return { result, sleeps: false };
  }
  return runLocal(deps, context, step, () => local.run(input, localContext(deps, context, step)));
}

interface Ended {
  step: ToolStep;
  result: ToolResult;
  /** Notes from the hooks before the call. */
  notes: string[];
  sleeps: boolean;
  /** Null: no event reports the end. */
  durationMs: number | null;
}

/** Runs the hooks on a result once, then publishes the result they return. */
async function runPostToolHooks(
  deps: RoundDeps,
  context: RoundContext,
  { step, result, notes, sleeps, durationMs }: Ended,
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
  if (verdict.ran > 0) await settleStep(deps, step, shown.isError ? "failed" : "done", shown, { hookOutcome: outcome });
  context.release(step.n, verdict.ran > 0);
  if (durationMs !== null) context.observer.finished(step, shown, durationMs);
  return endAfterHooks(outcome, { result: shown, notes, sleeps });
}

function endAfterHooks(
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
