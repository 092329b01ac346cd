// What a person has answered about one exact call, and what the rules make of the arguments a person puts in its place.
import { contactRoles, type ClaimedTurn, type ToolStep } from "@parley/contracts";
import type { HookPlace } from "../hooks/payloads.ts";
import type { RunHooks } from "../hooks/run-hooks.ts";
import { stopText } from "../hooks/verdict.ts";
import { callHash } from "../permissions/call-hash.ts";
import { readCall } from "../permissions/call.ts";
import { decidePermission, type PermissionContext } from "../permissions/decide.ts";
import { inOwnWords } from "../tools/argument-names.ts";
import { wrongArguments } from "../tools/wrong-arguments.ts";
import type { TurnTool } from "./toolbox.ts";
import { permissionTool } from "./trust.ts";

/**
 * Nobody waits for the answer of this turn's root: a question reaches an owner at another address, or nobody. That is a
 * synchronous API call, and everything that no person sent.
 */
export function isOwnerOnly({ root }: ClaimedTurn): boolean {
  return root.approvals === "owner" || !contactRoles.some((role) => role === root.trust);
}

/** A denial, for the model; `interrupt`: the turn ends with it. */
interface Denial {
  content: string;
  interrupt: boolean;
}

/** The denial of this very call: by a person, or because nobody answered in time. Undefined: there is none. */
export function denialOf({ approval }: ToolStep, hash: string): Denial | undefined {
  if (approval?.callHash !== hash) return undefined;
  if (approval.state === "denied") {
    const by = approval.decidedBy ?? "a person";
    const why = approval.message === undefined ? "." : `: ${approval.message}`;
    return { content: `Not run: ${by} said no${why}`, interrupt: approval.interrupt === true };
  }
  return approval.state === "expired"
    ? { content: "Not run: it needed a person's yes, and nobody answered in time.", interrupt: false }
    : undefined;
}

export interface RewriteDeps {
  runHooks: RunHooks;
  place: HookPlace;
  permissions: PermissionContext;
  /** What `exec` runs is isolated. */
  contained: boolean;
}

export type Rewritten =
  | { verdict: "run"; input: string; notes: readonly string[] }
  | { verdict: "refuse"; content: string; notes: readonly string[] }
  | { verdict: "stop"; text: string };

/**
 * Judges a call with the arguments that a person's approval puts in place of its own. PreToolUse hooks receive them like
 * arguments of the model; the rules then judge them as a rewrite by a PermissionRequest hook that allows: the approval counts
 * for what would need one, and denials hold. `input`: JSON text.
 */
export async function judgeRewrite(
  deps: RewriteDeps,
  step: ToolStep,
  tool: TurnTool,
  input: string,
  signal: AbortSignal,
): Promise<Rewritten> {
  const { name, aliases } = tool.descriptor;
  const written = inOwnWords(name, input);
  const use = { tool: name, aliases, callId: step.callId, input: written };
  const verdict = await deps.runHooks("PreToolUse", deps.place, use, signal);
  if (verdict.continue === false) return { verdict: "stop", text: stopText(verdict) };
  const refuse = (content: string): Rewritten => ({ verdict: "refuse", content, notes: verdict.contexts });
  if (verdict.decision === "deny") return refuse(`A hook refused this call: ${verdict.reason ?? "it gave no reason"}.`);
  const final = inOwnWords(name, verdict.updatedInput ?? written);
  const call = await readCall(permissionTool(tool, deps.contained), final);
  const approved = { decision: "allow" as const, reason: "A person allows it with these arguments.", updated: call };
  const decided = decidePermission(call, { ...deps.permissions, hook: approved });
  if (decided.decision !== "allow") return refuse(`Not allowed, as rewritten by a person: ${decided.reason}`);
  const wrong = await wrongArguments(tool.descriptor, final);
  return wrong === undefined ? { verdict: "run", input: final, notes: verdict.contexts } : refuse(wrong);
}

/** Whether the arguments of an approval differ from those of the call; the order of keys makes no difference. */
export function isRewrite(tool: string, hash: string, updatedInput: string | undefined): updatedInput is string {
  return updatedInput !== undefined && callHash(tool, inOwnWords(tool, updatedInput)) !== hash;
}
