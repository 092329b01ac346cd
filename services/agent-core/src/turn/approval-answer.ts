// A person's answer to one exact tool call, and the permission check of arguments that the person edited.
import { contactRoles, type ClaimedTurn, type ToolStep } from "@parley/contracts";
import type { HookContext } from "../hooks/payloads.ts";
import type { RunHooks } from "../hooks/run-hooks.ts";
import { stopText } from "../hooks/verdict.ts";
import { callHash } from "../policy/call-hash.ts";
import { parseCall } from "../policy/parsed-call.ts";
import { decidePermission, type PermissionContext } from "../policy/decide.ts";
import { normalizeArguments } from "../tools/normalize-arguments.ts";
import { argumentErrors } from "../tools/validate-arguments.ts";
import type { TurnTool } from "../tools/toolbox.ts";
import { permissionTool } from "../policy/taint.ts";

/**
 * Only an owner can answer, at another address than the one this turn's root replies to. True of synchronous API calls
 * and of all input that no person sent.
 */
export function isOwnerOnly({ root }: ClaimedTurn): boolean {
  return root.approvals === "owner" || !contactRoles.some((role) => role === root.trust);
}

/** A denial, as text for the model; `interrupt`: the turn ends with it. */
interface Denial {
  content: string;
  interrupt: boolean;
}

/** The denial of this exact call by a person or by timeout; undefined without one. */
export function denialOf({ approval }: ToolStep, hash: string): Denial | undefined {
  if (approval?.callHash !== hash) return undefined;
  if (approval.state === "denied") {
    const by = approval.decidedBy ?? "a person";
    const why = approval.message === undefined ? "." : `: ${approval.message}`;
    return { content: `Not run: denied by ${by}${why}`, interrupt: approval.interrupt === true };
  }
  return approval.state === "expired"
    ? { content: "Not run: the approval request timed out.", interrupt: false }
    : undefined;
}

export interface RewriteDeps {
  runHooks: RunHooks;
  place: HookContext;
  permissions: PermissionContext;
  /** Commands of `exec` run isolated. */
  contained: boolean;
}

export type Rewritten =
  | { verdict: "run"; input: string; notes: readonly string[] }
  | { verdict: "refuse"; content: string; notes: readonly string[] }
  | { verdict: "stop"; text: string };

/**
 * Checks a call with the arguments from a person's approval. PreToolUse hooks receive them like arguments of the model.
 * The rules then treat them like a rewrite by a PermissionRequest hook that allows: the approval replaces an `ask`, and
 * deny rules still apply. `input`: JSON text.
 */
export async function judgeRewrite(
  deps: RewriteDeps,
  step: ToolStep,
  tool: TurnTool,
  input: string,
  signal: AbortSignal,
): Promise<Rewritten> {
  const { name, aliases } = tool.descriptor;
  const written = normalizeArguments(name, input);
  const use = { tool: name, aliases, callId: step.callId, input: written };
  const verdict = await deps.runHooks("PreToolUse", deps.place, use, signal);
  if (verdict.continue === false) return { verdict: "stop", text: stopText(verdict) };
  const refuse = (content: string): Rewritten => ({ verdict: "refuse", content, notes: verdict.contexts });
  if (verdict.decision === "deny") return refuse(`A hook denied this call: ${verdict.reason ?? "no reason given"}.`);
  const final = normalizeArguments(name, verdict.updatedInput ?? written);
  const call = await parseCall(permissionTool(tool, deps.contained), final);
  const approved = { decision: "allow" as const, reason: "A person approved it with these arguments.", updated: call };
  const decided = decidePermission(call, { ...deps.permissions, hook: approved });
  if (decided.decision !== "allow") return refuse(`Not allowed with the arguments a person edited: ${decided.reason}`);
  const wrong = await argumentErrors(tool.descriptor, final);
  return wrong === undefined ? { verdict: "run", input: final, notes: verdict.contexts } : refuse(wrong);
}

/** Whether the arguments of an approval differ from those of the call; key order is ignored. */
export function isRewrite(tool: string, hash: string, updatedInput: string | undefined): updatedInput is string {
  return updatedInput !== undefined && callHash(tool, normalizeArguments(tool, updatedInput)) !== hash;
}
