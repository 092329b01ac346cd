// Starts the first calls of a reply while the reply is being committed. Only where nothing depends on the commit: the call reads files and
// does nothing else, the rules allow it as it is, and no hook sees it before it runs. A call that does not end well here runs again after the
// commit; when the commit fails, the results are dropped.
import type { ToolDescriptor, ToolStep } from "@parley/contracts";
import { matchesHook } from "../hooks/matcher.ts";
import { decidePermission } from "../policy/decide.ts";
import { parseCall } from "../policy/parsed-call.ts";
import { isContainedFor, permissionTool } from "../policy/taint.ts";
import { normalizeArguments } from "../tools/normalize-arguments.ts";
import type { TurnTool } from "../tools/toolbox.ts";
import { withReview } from "./approval.ts";
import type { Authorization } from "./authorize-call.ts";
import { requestRunner, roomFor, type CallResult } from "./dispatch-call.ts";
import { groupsOf, remoteCall, type RoundContext, type RoundDeps } from "./tool-round.ts";
import { permissionContext } from "./turn-permissions.ts";

type AllowedCall = Extract<Authorization, { verdict: "run" }>;

/** A call that was started before its step was committed. */
export interface AheadCall {
  authorization: AllowedCall;
  /** On the monotonic clock. */
  startedAt: number;
  /** Undefined: the call must be requested again. */
  result: Promise<CallResult | undefined>;
}

/** By step. */
export type AheadCalls = ReadonlyMap<number, AheadCall>;

export const noneAhead: AheadCalls = new Map();

/** Resolves when all of them have ended; their results are dropped. */
export async function dropAhead(calls: Promise<AheadCalls>): Promise<AheadCalls> {
  for (const { result } of (await calls).values()) await result;
  return noneAhead;
}

/** `steps`: the calls of the reply, which the store does not have yet. Never rejects. */
export async function startAhead(
  deps: RoundDeps,
  context: RoundContext,
  steps: readonly ToolStep[],
  signal: AbortSignal,
): Promise<AheadCalls> {
  const [group = []] = groupsOf(deps, context, steps);
  const launch = { callsFollow: group.length < steps.length, ...roomFor(steps.length) };
  const ahead = new Map<number, AheadCall>();
  for (const step of group) {
    const tool = context.toolbox.find(step.tool);
    if (tool === undefined || tool.local !== undefined || !onlyReadsFiles(tool.descriptor)) continue;
    const authorization = await authorize(deps, context, step, tool);
    if (authorization === undefined) continue;
    const call = remoteCall(deps, context, { ...launch, step, tool, input: authorization.input });
    const result = requestRunner(deps, call, signal).then(
      (outcome) => (outcome.status === "answered" ? outcome.answer : undefined),
      () => undefined,
    );
    ahead.set(step.n, { authorization, startedAt: performance.now(), result });
  }
  return ahead;
}

/** Evaluates the rules only. Undefined: they do not allow the call as it is, or a hook sees it. */
async function authorize(
  { settings, tools }: RoundDeps,
  context: RoundContext,
  step: ToolStep,
  tool: TurnTool,
): Promise<AllowedCall | undefined> {
  const { name, aliases } = tool.descriptor;
  const isHooked = settings.hooks.some((hook) =>
    (["PreToolUse", "PermissionRequest"] as const).some((event) => matchesHook(hook, event, [name, ...aliases])),
  );
  if (isHooked) return undefined;
  const input = normalizeArguments(name, step.input, step.tool);
  const call = await parseCall(permissionTool(tool, isContainedFor(context.turn, context.toolbox)), input);
  const decided = withReview(context.turn, decidePermission(call, permissionContext(settings, context, tool)));
  if (decided.decision !== "allow" || decided.updatedInput !== undefined) return undefined;
  tools.permissionEvaluated("allow");
  return { verdict: "run", input, notes: [] };
}

/** Without effects, and without answers from outside: repeating the call is invisible to everybody. */
function onlyReadsFiles({ class: toolClass, readOnly, effects, asksMs }: ToolDescriptor): boolean {
  return (
    toolClass === "pure" && readOnly && asksMs === undefined && effects.length === 1 && effects[0] === "reads_files"
  );
}
