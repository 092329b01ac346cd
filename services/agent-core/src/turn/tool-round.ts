// Runs the tool calls of one step:
//
//   per call   authorize → refuse · wait for a person · run (here or on a tool-runner) → hooks on the result
//   per step   groups by execution policy, launched one after the other; results in call order
//
// A call with a result in the store is not run again. A call that waits for somebody lets the others of its group
// finish.
import { faultPoint } from "@parley/chassis";
import type { InlineSettlement, ToolResult, ToolStep } from "@parley/contracts";
import { millisecondsSince, type Permit } from "@parley/kit";
import type { LocalTool } from "../tools/local-tool.ts";
import { roleOf, workspaceOf } from "../policy/workspace-access.ts";
import type { AheadCall, AheadCalls } from "./ahead-calls.ts";
import { authorizeToolCall, type AuthorizationContext, type AuthorizationDeps } from "./authorize-call.ts";
import { deniedPaths } from "./turn-permissions.ts";
import { endCall, endOfStored, previewChars, runPostToolHooks, type CallEnd } from "./call-end.ts";
import { callGroups } from "../tools/call-groups.ts";
import { dispatchToRunner, settle, roomFor, type RemoteCall } from "./dispatch-call.ts";
import { normalizeArguments } from "../tools/normalize-arguments.ts";
import type { SamplingCall } from "../sampling/service.ts";
import type { TurnDeps } from "./dependencies.ts";
import type { TurnTool } from "../tools/toolbox.ts";
import { localContext, runLocal, type Ran } from "./local-tools.ts";
import { audienceOf, documentRights, isTainted } from "../policy/taint.ts";

export type RoundDeps = AuthorizationDeps & Pick<TurnDeps, "bus">;

/** The turn's facts for its calls; they do not change during a round. */
export interface RoundContext extends AuthorizationContext {
  /** The call `n` as a source of sampling requests of its MCP server. */
  samplingCall(n: number, tool: string): SamplingCall;
  /** The turn's slot; released while a call on a tool-runner waits for a person. */
  slot: Pick<Permit, "release" | "acquire">;
  /** Calls of the round that were started before. */
  ahead: AheadCalls;
  /** Whether input that may join the turn is waiting: calls that were not launched yet are skipped for it. */
  steered(): boolean;
}

export interface Round {
  /** In call order; calls that were not launched have none. */
  results: ToolResult[];
  /** Results that the store does not have yet, for the turn's next commit. */
  unsettled: InlineSettlement;
  /** Steps whose results may be shown: no hook on them is pending. */
  released: number[];
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
  /** The round was interrupted or a call failed: `results` is incomplete. Null: neither. */
  failure: { error: unknown } | null;
}

/** Never rejects: when the signal aborts, `failure` has its reason once every running call was cancelled. */
export async function runToolRound(
  deps: RoundDeps,
  context: RoundContext,
  steps: readonly ToolStep[],
  signal: AbortSignal,
): Promise<Round> {
  const round: Round = {
    results: [],
    unsettled: [],
    released: [],
    notes: [],
    waitingFor: [],
    wakeAt: null,
    skipped: false,
    stop: null,
    sleeps: false,
    failure: null,
  };
  try {
    await runGroups(deps, context, steps, round, signal);
  } catch (error) {
    round.failure = { error };
  }
  return round;
}

async function runGroups(
  deps: RoundDeps,
  context: RoundContext,
  steps: readonly ToolStep[],
  round: Round,
  signal: AbortSignal,
): Promise<void> {
  const groups = groupsOf(deps, context, steps);
  const room = roomFor(steps.length);
  for (const [index, group] of groups.entries()) {
    signal.throwIfAborted();
    const fresh = group.some((step) => step.result === null && step.state === "intended");
    if (index > 0 && fresh && context.steered()) {
      round.skipped = true;
      return;
    }
    const callsFollow = index < groups.length - 1;
    const ends = await Promise.allSettled(
      group.map((step) => endOf(deps, context, { step, round, callsFollow, ...room }, signal)),
    );
    await context.slot.acquire(signal);
    for (const [at, each] of ends.entries()) {
      if (each.status === "rejected") throw each.reason;
      take(round, group[at], each.value);
    }
    // Later calls may depend on results that are still missing.
    if (round.waitingFor.length > 0 || round.stop !== null) return;
  }
}

/** The calls of a step in the groups that are launched together. */
export function groupsOf(
  { settings }: Pick<RoundDeps, "settings">,
  { toolbox, policy }: Pick<RoundContext, "toolbox" | "policy">,
  steps: readonly ToolStep[],
): ToolStep[][] {
  const calls = steps.map((step) => ({ step, tool: toolbox.find(step.tool)?.descriptor }));
  const groups = callGroups(calls, policy.execution, settings.tools.max_parallel);
  return groups.map((group) => group.map(({ step }) => step));
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
  /** The round of the call. */
  round: Round;
  /** Later calls of the step start after this one. */
  callsFollow: boolean;
  maxResultBytes: number;
  unsettledBytes: number;
}

async function endOf(deps: RoundDeps, context: RoundContext, launch: Launch, signal: AbortSignal): Promise<CallEnd> {
  const { step, round } = launch;
  if (step.result !== null && step.hookOutcome !== undefined) {
    round.released.push(step.n);
    return endOfStored(step.hookOutcome, step.result);
  }
  // Settled before this leader took over: its hooks have not run.
  if (step.result !== null) {
    // Settled by another service while the turn was parked: no event has reported it yet.
    const durationMs = step.runner === "agent-core" ? (millisecondsSince(step.startedAt) ?? 0) : null;
    const notes = storedNotes(step);
    const input = storedInput(context, step);
    const ended = { ...launch, result: step.result, input, notes, sleeps: false, durationMs };
    return runPostToolHooks(deps, context, ended, signal);
  }
  const tool = context.toolbox.find(step.tool);
  if (tool === undefined) {
    const result = await settle(deps, step, "failed", context.toolbox.unknown(step.tool), { refused: true });
    return endCall(deps, context, { ...launch, result, notes: [], sleeps: false, durationMs: 0 }, { notes: [] });
  }
  // Started already: a sub-agent works on it, or a person was asked.
  if (tool.local !== undefined && step.state === "running" && step.runner === "agent-core") {
    return resumeCall(deps, context, launch, tool.local, signal);
  }
  const ahead = context.ahead.get(step.n);
  const startedAt = ahead?.startedAt ?? performance.now();
  const permitted = ahead?.authorization ?? (await authorizeToolCall(deps, context, step, tool, signal));
  switch (permitted.verdict) {
    case "stop":
      return { end: "stop", text: permitted.text };
    case "wait":
      return { end: "waiting", until: permitted.until };
    case "refuse":
    case "interrupt": {
      const result = await settle(deps, step, "failed", permitted.content, { refused: true });
      const { turnId, callId } = step;
      context.publish({ type: "tool.denied", turnId, callId, tool: step.tool, reason: permitted.content });
      const notes = permitted.verdict === "refuse" ? permitted.notes : [];
      const durationMs = performance.now() - startedAt;
      const end = await endCall(deps, context, { ...launch, result, notes, sleeps: false, durationMs }, { notes: [] });
      return permitted.verdict === "interrupt" ? { end: "stop", text: permitted.content, result } : end;
    }
    default: {
      const { turnId, callId } = step;
      const preview = permitted.input.slice(0, previewChars);
      context.publish({ type: "tool.started", turnId, callId, tool: step.tool, input: preview });
      faultPoint("agent.before_tool");
      const ran = await run(deps, context, { ...launch, tool, input: permitted.input, ahead }, signal);
      if ("until" in ran) return { end: "waiting", until: ran.until };
      const durationMs = performance.now() - startedAt;
      const { input, notes } = permitted;
      return runPostToolHooks(deps, context, { ...launch, ...ran, input, notes, durationMs }, signal);
    }
  }
}

/** The arguments of a call that was started before: as hooks changed them or a person approved them, otherwise as the model wrote them. */
function storedInput({ toolbox }: RoundContext, { tool, input, authorization, approval }: ToolStep): string {
  const [name = tool] = toolbox.namesOf(tool);
  const approved = approval?.updatedInput ?? approval?.authorization?.input;
  return normalizeArguments(name, authorization?.input ?? approved ?? input, tool);
}

/** The notes of the hooks before a call that was started before. */
function storedNotes({ authorization, approval }: ToolStep): string[] {
  return authorization?.notes ?? approval?.authorization?.notes ?? [];
}

/** Polls a call that waits for somebody when the turn resumes for another reason. */
async function resumeCall(
  deps: RoundDeps,
  context: RoundContext,
  launch: Launch,
  local: LocalTool,
  signal: AbortSignal,
): Promise<CallEnd> {
  const { step } = launch;
  const { resume } = local;
  if (resume === undefined) return { end: "waiting", until: null };
  const input = storedInput(context, step);
  const ran = await runLocal(deps, context, step, () => resume(input, localContext(deps, context, step)));
  if ("until" in ran) return { end: "waiting", until: ran.until };
  const durationMs = millisecondsSince(step.startedAt) ?? 0;
  const notes = storedNotes(step);
  return runPostToolHooks(deps, context, { ...launch, ...ran, input, notes, durationMs }, signal);
}

async function run(
  deps: RoundDeps,
  context: RoundContext,
  call: Launch & { tool: TurnTool; input: string; ahead: AheadCall | undefined },
  signal: AbortSignal,
): Promise<Ran> {
  const { step, tool, input } = call;
  const { local, descriptor } = tool;
  if (local !== undefined) {
    return runLocal(deps, context, step, () => local.run(input, localContext(deps, context, step)));
  }
  const dispatch = () => dispatchToRunner(deps, remoteCall(deps, context, call), signal);
  const { result, unsettled } =
    (await call.ahead?.result) ??
    (await deps.tools.sampling.during(context.samplingCall(step.n, descriptor.name), signal, dispatch));
  if (unsettled !== null) call.round.unsettled.push({ n: step.n, state: unsettled, result });
  return { result, sleeps: false };
}

/** The request of a call to a tool-runner. */
export function remoteCall(
  { settings }: Pick<RoundDeps, "settings">,
  context: RoundContext,
  call: Omit<Launch, "round"> & { tool: TurnTool; input: string },
): RemoteCall {
  const { turn } = context;
  const { step, tool, input } = call;
  const { descriptor } = tool;
  const audience = audienceOf(turn, context.taint);
  return {
    sessionId: turn.sessionId,
    rootTurnId: turn.root.turnId,
    audience,
    role: roleOf(turn.root.trust),
    workspace: workspaceOf(turn, settings.workspace, context.policy.folder),
    tainted: isTainted(turn, context.taint),
    documents: documentRights(descriptor, audience),
    minIsolation: context.policy.minIsolation,
    callsFollow: call.callsFollow,
    denyPaths: deniedPaths(settings, context, tool),
    // Tool-runners know tools by their own names only.
    step: { ...step, tool: descriptor.name },
    input,
    timeoutMs: descriptor.timeoutMs,
    asksMs: descriptor.asksMs ?? 0,
    asks: () => context.slot.release(),
    progress: (progress) =>
      context.publish({ type: "tool.progress", turnId: step.turnId, callId: step.callId, tool: step.tool, progress }),
    maxResultBytes: call.maxResultBytes,
    maxResultCharacters: settings.tools.max_result_chars,
    unsettledBytes: call.unsettledBytes,
  };
}
