// Authorizes one tool call: runs the hooks, evaluates the permission rules, and requests approval where required. A question is
// stored with the outcome, and the answer resumes from it: for these calls all of it happens once. Nothing here waits.
import { store, type StoredAuthorization, type ToolStep } from "@parley/contracts";
import type { HookContext } from "../hooks/payloads.ts";
import { stopText, type Verdict } from "../hooks/verdict.ts";
import { callHash, parseCall, type ParsedCall } from "../policy/parsed-call.ts";
import { decidePermission, type HookVerdict, type PermissionContext } from "../policy/decide.ts";
import { describeCall, tooLongToApprove } from "../policy/describe.ts";
import { alwaysRules } from "../policy/session-rules.ts";
import { webTargetOf } from "../policy/web-access.ts";
import { normalizeArguments } from "../tools/normalize-arguments.ts";
import { argumentErrors } from "../tools/validate-arguments.ts";
import type { TurnDeps } from "./dependencies.ts";
import type { TurnPolicy } from "../policy/turn-policy.ts";
import type { Toolbox, TurnTool } from "../tools/toolbox.ts";
import { isContainedFor, permissionTool, type Taint } from "../policy/taint.ts";
import { permissionContext, rulesRevision } from "./turn-permissions.ts";
import {
  addAlwaysRules,
  denialOf,
  isDenied,
  isRewritten,
  requestApproval,
  withReview,
  type ApprovalContext,
  type ApprovalDeps,
  type StoredApproval,
} from "./approval.ts";

export type AuthorizationDeps = ApprovalDeps & Pick<TurnDeps, "runHooks" | "tools">;

/** The same for all calls of a round. */
export interface AuthorizationContext extends ApprovalContext {
  policy: TurnPolicy;
  toolbox: Toolbox;
  hookContext: HookContext;
  taint: Taint;
  /** The addresses that owners wrote in this conversation. */
  ownerAddresses: () => ReadonlySet<string>;
}

export type Authorization =
  | { verdict: "run"; input: string; notes: string[] }
  | { verdict: "refuse"; content: string; notes: string[] }
  /** Approval is pending; `until`: ISO 8601. */
  | { verdict: "wait"; until: string }
  /** A hook ends the turn with this text. */
  | { verdict: "stop"; text: string }
  /** A person denied the call, which ends the turn. */
  | { verdict: "interrupt"; content: string };

/** The call under authorization, with what all its steps use. */
interface Subject {
  deps: AuthorizationDeps;
  context: AuthorizationContext;
  step: ToolStep;
  tool: TurnTool;
  permissions: PermissionContext;
  signal: AbortSignal;
}

/**
 * Runs each hook once for the arguments of the model: a call with a stored question, or with arguments that a hook changed, resumes from
 * its outcome. Otherwise nothing is stored, and a new leader evaluates a call that was not settled again. Arguments that the approver
 * edited run through PreToolUse as well. Rejects with the signal's reason.
 */
export async function authorizeToolCall(
  deps: AuthorizationDeps,
  context: AuthorizationContext,
  step: ToolStep,
  tool: TurnTool,
  signal: AbortSignal,
): Promise<Authorization> {
  const permissions = permissionContext(deps.settings, context, tool);
  const subject = { deps, context, step, tool, permissions, signal };
  const { approval, authorization } = step;
  if (authorization !== undefined) return resumeChanged(subject, authorization);
  return approval?.authorization === undefined ? evaluate(subject) : resume(subject, approval, approval.authorization);
}

/** Runs the hooks, evaluates the rules and requests approval if it is required. */
async function evaluate(subject: Subject): Promise<Authorization> {
  const { deps, context, step, tool, permissions, signal } = subject;
  const { name, aliases } = tool.descriptor;
  const facts = { tool: name, aliases, callId: step.callId, input: normalizeArguments(name, step.input, step.tool) };
  const checked = await runPreToolUse(subject, facts.input);
  if ("verdict" in checked) return checked;
  const { hook: before, input, notes } = checked;

  const call = await parsed(subject, input);
  const hookDecision = hookVerdict(before, call);
  let decided = decidePermission(
    call,
    hookDecision === undefined ? permissions : { ...permissions, hook: hookDecision },
  );
  const askedByHook = before.decision === "ask";
  if (askedByHook && decided.decision === "allow" && decided.step === "risk") {
    const reason = before.reason ?? "A hook requires approval.";
    decided = { ...decided, decision: "ask", reason, hookMayAnswer: false };
  }
  if (decided.hookMayAnswer) {
    const use = { ...facts, input, reason: decided.reason };
    const requested = await deps.runHooks("PermissionRequest", context.hookContext, use, signal);
    if (requested.continue === false) return { verdict: "stop", text: stopText(requested) };
    notes.push(...requested.contexts);
    const rewritten = requested.updatedInput === null ? call : await parsed(subject, requested.updatedInput);
    const hook = hookVerdict(requested, rewritten);
    if (hook !== undefined) decided = decidePermission(call, { ...permissions, hook });
  }
  deps.tools.permissionEvaluated(decided.decision);

  const final = decided.updatedInput === undefined ? input : JSON.stringify(decided.updatedInput);
  const hash = callHash(call.tool.name, final);
  // A question of an older agent-core, which stored no authorization with it.
  const approval = step.approval?.callHash === hash ? step.approval : undefined;
  // A denial remains in force, even if rules have allowed the call since.
  if (approval !== undefined && isDenied(approval)) return denied(approval, notes);
  decided = withReview(context.turn, decided);
  if (decided.decision === "allow") return allowed(subject, facts.input, final, notes);
  if (decided.decision === "deny") return refuse(`Not allowed: ${decided.reason}`, notes);
  const wrong = await argumentErrors(tool.descriptor, final);
  // Nobody is asked to approve a call that cannot run.
  if (wrong !== undefined) return refuse(wrong, notes);
  const summary = describeCall(call);
  const tooLong = tooLongToApprove(summary);
  if (tooLong !== null) return refuse(tooLong, notes);

  const rules = rulesRevision(deps.settings, context);
  const always = alwaysRules(context.turn, call, permissions.tainted, decided.step);
  const authorization = { input: final, notes, rules, askedByHook, always };
  if (approval !== undefined) return resolveApproval(subject, approval, authorization);
  const until = await requestApproval(deps, context, { step, call, hash, decided, authorization });
  if (until === null) {
    return refuse(`Not allowed: ${decidePermission(call, { ...permissions, canAsk: false }).reason}`, notes);
  }
  const message = `${call.tool.name}: ${summary}`;
  await deps.runHooks("Notification", context.hookContext, { type: "permission_prompt", message }, signal);
  return { verdict: "wait", until };
}

/**
 * The verdict of the PreToolUse hooks on these arguments (JSON text), with the arguments they return; or the end of the call, if they
 * deny it or end the turn.
 */
async function runPreToolUse(
  { deps, context, step, tool, signal }: Subject,
  input: string,
): Promise<Authorization | { hook: Verdict; input: string; notes: string[] }> {
  const { name, aliases } = tool.descriptor;
  const use = { tool: name, aliases, callId: step.callId, input };
  const hook = await deps.runHooks("PreToolUse", context.hookContext, use, signal);
  if (hook.continue === false) return { verdict: "stop", text: stopText(hook) };
  const notes = [...hook.contexts];
  if (hook.decision === "deny") return refuse(`A hook denied this call: ${hook.reason ?? "no reason given"}.`, notes);
  return { hook, input: normalizeArguments(name, hook.updatedInput ?? input), notes };
}

/** Runs a call with these arguments, which are stored if a hook changed them: no leader runs the call without the change. */
async function allowed(
  { deps, context, step }: Subject,
  before: string,
  input: string,
  notes: string[],
): Promise<Authorization> {
  if (input !== before) {
    const rules = rulesRevision(deps.settings, context);
    const authorization = { input, notes, rules, askedByHook: false, always: null };
    await deps.leaderStore.request(store.stepAuthorize, { turnId: step.turnId, n: step.n, authorization });
  }
  return { verdict: "run", input, notes };
}

/** Continues a call that may run with arguments that a hook changed; everything is evaluated again if changed rules require a question. */
async function resumeChanged(subject: Subject, { input, notes, rules }: StoredAuthorization): Promise<Authorization> {
  const { deps, context, permissions } = subject;
  if (rules === rulesRevision(deps.settings, context)) return { verdict: "run", input, notes };
  const decided = withReview(context.turn, decidePermission(await parsed(subject, input), permissions));
  deps.tools.permissionEvaluated(decided.decision);
  if (decided.decision === "deny") return refuse(`Not allowed: ${decided.reason}`, notes);
  return decided.decision === "allow" ? { verdict: "run", input, notes } : evaluate(subject);
}

/** Continues a call that was evaluated before; the rules are evaluated again only if they have changed since. */
async function resume(
  subject: Subject,
  approval: StoredApproval,
  authorization: StoredAuthorization,
): Promise<Authorization> {
  const { deps, context, permissions } = subject;
  const { input, notes, rules, askedByHook } = authorization;
  if (isDenied(approval)) return denied(approval, notes);
  const call = await parsed(subject, input);
  // What the approval of this call granted is no change of the rules.
  const granted = approval.state === "allowed" ? (webTargetOf(call)?.rules ?? []) : [];
  if (rules !== rulesRevision(deps.settings, context, granted)) {
    const decided = withReview(context.turn, decidePermission(call, permissions));
    deps.tools.permissionEvaluated(decided.decision);
    if (decided.decision === "deny") return refuse(`Not allowed: ${decided.reason}`, notes);
    const isAllowed = decided.decision === "allow" && !(askedByHook && decided.step === "risk");
    if (isAllowed && approval.state === "pending") return { verdict: "run", input, notes };
  }
  return resolveApproval(subject, approval, authorization);
}

/** What the state of its question means for a call. */
async function resolveApproval(
  subject: Subject,
  approval: StoredApproval,
  { input, notes, always }: StoredAuthorization,
): Promise<Authorization> {
  switch (approval.state) {
    case "pending":
      return { verdict: "wait", until: approval.expiresAt };
    case "allowed":
      if (isRewritten(subject.tool.descriptor.name, approval))
        return judgeRewrite(subject, approval.updatedInput, notes);
      if (approval.always && always !== null) await addAlwaysRules(subject.deps, subject.context, always);
      return { verdict: "run", input, notes };
    case "denied":
    case "expired":
      return denied({ ...approval, state: approval.state }, notes);
    default:
      return approval.state satisfies never;
  }
}

/**
 * Checks a call with the arguments from a person's approval, after its PreToolUse hooks. The rules treat them like a rewrite by a
 * PermissionRequest hook that allows: deny rules still apply. `edited`: JSON text. `before`: notes of the hooks on the original call.
 */
async function judgeRewrite(subject: Subject, edited: string, before: readonly string[]): Promise<Authorization> {
  const { deps, tool, permissions } = subject;
  const approved = normalizeArguments(tool.descriptor.name, edited);
  const checked = await runPreToolUse(subject, approved);
  if ("verdict" in checked && checked.verdict !== "refuse") return checked;
  const notes = [...before, ...checked.notes];
  if ("verdict" in checked) return { ...checked, notes };
  const { input: final } = checked;
  const call = await parsed(subject, final);
  const hook = { decision: "allow" as const, reason: "A person approved it with these arguments.", updated: call };
  const decided = decidePermission(call, { ...permissions, hook });
  deps.tools.permissionEvaluated(decided.decision);
  if (decided.decision !== "allow") {
    return refuse(`Not allowed with the arguments a person edited: ${decided.reason}`, notes);
  }
  const wrong = await argumentErrors(tool.descriptor, final);
  return wrong === undefined ? allowed(subject, approved, final, notes) : refuse(wrong, notes);
}

function refuse(content: string, notes: string[]): Authorization {
  return { verdict: "refuse", content, notes };
}

function denied(approval: Parameters<typeof denialOf>[0], notes: string[]): Authorization {
  const { content, interrupt } = denialOf(approval);
  return interrupt ? { verdict: "interrupt", content } : refuse(content, notes);
}

function parsed({ context, tool }: Subject, input: string): Promise<ParsedCall> {
  return parseCall(permissionTool(tool, isContainedFor(context.turn, context.toolbox)), input);
}

/** A hook's verdict for the permission engine, which ignores `ask` and no decision. */
function hookVerdict(verdict: Verdict, updated: ParsedCall): HookVerdict | undefined {
  if (verdict.decision !== "allow" && verdict.decision !== "deny") return undefined;
  const reason = verdict.reason ?? `A hook ${verdict.decision === "allow" ? "allows" : "denies"} it.`;
  return { decision: verdict.decision, reason, ...(verdict.updatedInput === null ? {} : { updated }) };
}
