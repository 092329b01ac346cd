// Runs the calls of local tools: those that agent-core runs itself.
import type { ToolResult, ToolStep } from "@parley/contracts";
import { millisecondsSince } from "@parley/kit";
import { audienceOf, isTainted } from "../policy/taint.ts";
import { traceTool } from "../telemetry/telemetry.ts";
import type { LocalContext, LocalOutcome } from "../tools/local-tool.ts";
import { settle } from "./dispatch-call.ts";
import type { RoundContext, RoundDeps } from "./tool-round.ts";

/** The outcome of a call: its result, or the latest time to resume while it waits. */
export type Ran = { result: ToolResult; sleeps: boolean } | { until: string | null };

/** What a local tool receives for this call. */
export function localContext(deps: RoundDeps, context: RoundContext, step: ToolStep): LocalContext {
  const { policy, turn, publish, taint } = context;
  const audience = audienceOf(turn, taint);
  return { ...deps, policy, turn, step, name: step.tool, tainted: isTainted(turn, taint), audience, publish };
}

/** Runs `work` for a local call and settles the call, unless it waits or the store has settled it. */
export async function runLocal(
  deps: RoundDeps,
  { turn }: RoundContext,
  step: ToolStep,
  work: () => Promise<LocalOutcome>,
): Promise<Ran> {
  let waiting: { until: string | null } | undefined;
  let sleeps = false;
  const beganAt = performance.now();
  const result = await traceTool(turn.sessionId, step, async () => {
    const outcome = await work();
    if (outcome.status === "settled") return outcome.result;
    if (outcome.status === "waiting") {
      waiting = { until: outcome.until ?? null };
      return { type: "tool_result" as const, id: step.callId, name: step.tool, content: "", isError: false };
    }
    sleeps = outcome.sleeps === true;
    const { outgoing = [], sent = [], untrusted = false } = outcome;
    // A call that waited began when it was started, possibly under another leader.
    const durationMs = millisecondsSince(step.startedAt) ?? performance.now() - beganAt;
    return settle(deps, step, outcome.status, outcome.content, { outgoing, sent, untrusted, durationMs });
  });
  return waiting ?? { result, sleeps };
}
