// Runs the hooks of an event one after the other and merges their verdicts. The tool-runner executes them; this file
// decides which ones run, in which order, and what a failure means.
import type { Bus } from "@parley/bus";
import type { Chassis } from "@parley/chassis";
import {
  errorMessage,
  hookEvents,
  hookName,
  hookRun,
  unmatchedHooks,
  type HookEvent,
  type HookPayload,
  type HookResult,
  type HookSettings,
} from "@parley/contracts";
import { isForProfile, matchesHook } from "./matcher.ts";
import { hookPayloads, subjectOfHook, type HookEventData, type HookContext } from "./payloads.ts";
import { endsChain, mergeVerdicts, neutralVerdict, rewritten, type HookOutcome, type Verdict } from "./verdict.ts";

/**
 * Runs the hooks of an event. Without configured hooks it returns synchronously and builds no payload. Rejects only
 * with the signal's reason: a failed hook is counted and logged, and its `on_failure` setting applies.
 */
export type RunHooks = <E extends HookEvent>(
  event: E,
  hookContext: HookContext,
  facts: HookEventData[E],
  signal: AbortSignal,
) => Verdict | Promise<Verdict>;

export interface HookDeps extends Pick<Chassis, "log" | "metrics"> {
  bus: Pick<Bus, "request">;
  /** In the order of parley.toml: a hook's name contains its position. */
  hooks: readonly HookSettings[];
}

interface NamedHook {
  name: string;
  hook: HookSettings;
}

/** Extra time for the answer after the hook's own timeout; also how long a tool-runner may be unavailable. */
const answerGraceMs = 3_000;

export function createHooks(deps: HookDeps): RunHooks {
  const named = deps.hooks.map((hook, index): NamedHook => ({ name: hookName(hook, index), hook }));
  for (const problem of unmatchedHooks(deps.hooks))
    deps.log.warn({ reason: problem }, "hook matcher ignored: no tool matches");
  const byEvent = new Map(hookEvents.map((event) => [event, named.filter(({ hook }) => hook.event === event)]));
  const count = (outcome: HookOutcome, payload: HookPayload) => {
    const { name, result } = outcome;
    deps.metrics.count("parley_hook_runs_total", { hook: name, outcome: result.outcome });
    if (result.outcome === "answered") return;
    const { session_id: sessionId, turn_id: turnId } = payload;
    deps.log.warn(
      { hook: name, sessionId, turnId, reason: result.reason, onFailure: outcome.onFailure },
      "hook failed",
    );
  };

  return (event, hookContext, facts, signal) => {
    const ofEvent = byEvent.get(event) ?? [];
    if (ofEvent.length === 0) return neutralVerdict;
    const payload: HookPayload = hookPayloads[event](hookContext, facts);
    const aliases = "aliases" in facts ? (facts.aliases ?? []) : [];
    const subjects = [subjectOfHook(payload), ...aliases];
    const matching = ofEvent.filter(
      ({ hook }) => isForProfile(hook, hookContext.profile) && matchesHook(hook, event, subjects),
    );
    return matching.length === 0 ? neutralVerdict : runChain(deps.bus, matching, payload, signal, count);
  };
}

async function runChain(
  bus: Pick<Bus, "request">,
  hooks: readonly NamedHook[],
  payload: HookPayload,
  signal: AbortSignal,
  count: (outcome: HookOutcome, payload: HookPayload) => void,
): Promise<Verdict> {
  const outcomes: HookOutcome[] = [];
  let verdict = neutralVerdict;
  for (const { name, hook } of hooks) {
    const result = await ask(bus, name, hook, rewritten(payload, verdict), signal);
    const outcome = { name, onFailure: hook.on_failure, result };
    count(outcome, payload);
    outcomes.push(outcome);
    verdict = mergeVerdicts(outcomes);
    if (endsChain(verdict)) break;
  }
  return verdict;
}

async function ask(
  bus: Pick<Bus, "request">,
  name: string,
  hook: HookSettings,
  payload: HookPayload,
  signal: AbortSignal,
): Promise<HookResult> {
  signal.throwIfAborted();
  try {
    const timeoutMs = hook.timeout_seconds * 1_000 + answerGraceMs;
    return await bus.request(hookRun, { hook: name, payload }, { timeoutMs, signal });
  } catch (error) {
    signal.throwIfAborted();
    return { outcome: "failed", reason: errorMessage(error) };
  }
}
