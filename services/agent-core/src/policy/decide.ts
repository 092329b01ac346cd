// Decides whether a tool call may run: a waterfall whose first decision wins. Pure; the caller asks people and calls hooks.
//
// 1 mode      plan, delegate, and bypass without `allow_bypass`, deny
// 2 disabled  tools that are switched off
//   role      guests have file and command tools only if `guest_allow` names them; later steps cannot override this
// 3 deny      rules of settings and session; later steps and hooks cannot override them
//             (in plan mode, exit_plan_mode requires approval)
//             (bypass, if allowed, runs all other calls; guests have no bypass)
// 4 rules     ask, then allow; in tainted turns only allow rules that name their tool, and what people approved in a tainted turn
// 5 hook      PermissionRequest, if approval is required: the caller calls the hook and decides again with its result
// 6 taint     the turn has read untrusted content and the call could act on it
// 7 risk      mode × risk; for guests every risk above `none` requires approval
//
// If approval is required and no person can give it, the call is denied.
import type { PermissionMode, ToolEffect, ToolRisk } from "@parley/contracts";
import type { ParsedCall } from "./parsed-call.ts";
import { assessRisk } from "./risk.ts";
import { type RuleMatch, findAllow, findPossibleMatch, findMatch } from "./rules.ts";
import type { TurnRules } from "./principal.ts";
import { startsSubagents, talksToPeople } from "./tool-traits.ts";
import { isGiven, webTargetOf } from "./web-access.ts";
import { isRefusedToGuests } from "./workspace-access.ts";

type Row = Readonly<Record<ToolRisk, "allow" | "ask">>;

const careful: Row = { none: "allow", low: "allow", medium: "ask", high: "ask", critical: "ask" };
const everything: Row = { none: "allow", low: "allow", medium: "allow", high: "allow", critical: "allow" };

/** The restrictions of plan and delegate are applied before; `dont_ask` later turns `ask` into a denial. */
const outcomes: Readonly<Record<PermissionMode, Row>> = {
  default: careful,
  accept_edits: { ...careful, medium: "allow" },
  plan: careful,
  dont_ask: careful,
  bypass: everything,
  delegate: everything,
};

function modeVerdict(mode: PermissionMode, risk: ToolRisk): "allow" | "ask" {
  return outcomes[mode][risk];
}

export type Principal = "owner" | "user" | "guest";

export interface PermissionContext {
  mode: PermissionMode;
  allowBypass: boolean;
  /** Names of tools that are switched off. */
  disabled: readonly string[];
  /** Rules of settings and session for this role: `rulesFor`. */
  rules: TurnRules;
  /** The role of the turn's principal. */
  principal: Principal;
  /** The turn has read untrusted content, and the settings enable taint tracking: `isTainted`. */
  tainted: boolean;
  /** Web addresses that an owner gave in this conversation: `addressesGivenIn`. Default: none. */
  ownerAddresses?: ReadonlySet<string>;
  /** Rules that grant workspace tools to a turn with a guest's rights: `guestRules`. Undefined if the turn has a higher role. */
  guestAllow?: readonly string[];
  /** Whether approval can be requested: an owner is reachable, and the turn may wait. */
  canAsk: boolean;
  /** How calls within the workspace and the sandbox are rated. Default: `allow`. */
  contained?: "allow" | "ask";
  /** Values of the argument `to` that mean the turn's own conversation; such messages are answers. */
  ownAddresses?: readonly string[];
  /** The verdict of a PermissionRequest hook; undefined if none was called or it was neutral. */
  hook?: HookVerdict;
}

export interface HookVerdict {
  decision: "allow" | "deny";
  /** For the model. */
  reason: string;
  /** The call with the hook's replacement arguments; it is assessed instead of the original call. */
  updated?: ParsedCall;
}

export type PermissionStep = "mode" | "disabled" | "role" | "deny" | "ask" | "allow" | "hook" | "taint" | "risk";

export interface PermissionDecision {
  decision: "allow" | "deny" | "ask";
  /** For the model and for the person who decides. */
  reason: string;
  /** The step of the waterfall that decided. */
  step: PermissionStep;
  /** The rule that decided, if any. */
  rule: string | null;
  risk: ToolRisk;
  /** A PermissionRequest hook may decide this: call it, then decide again with `hook`. */
  hookMayAnswer: boolean;
  /** Replacement arguments from a hook. */
  updatedInput?: ParsedCall["input"];
}

/** Decides whether the call may run. For `ask` and `hookMayAnswer` the caller consults a person or the hook. */
export function decidePermission(requested: ParsedCall, context: PermissionContext): PermissionDecision {
  const { mode, principal, hook } = context;
  const call = hook?.updated ?? requested;
  const { tool } = call;
  const { risk, effects, changesNothing } = assessRisk(call, context.ownAddresses, context.contained);
  const decide = (
    decision: "allow" | "deny" | "ask",
    step: PermissionStep,
    reason: string,
    rule: string | null = null,
  ): PermissionDecision => ({
    decision,
    reason,
    step,
    rule,
    risk,
    hookMayAnswer: false,
    ...(decision === "allow" && hook?.updated !== undefined ? { updatedInput: hook.updated.input } : {}),
  });
  const needsYes = (step: PermissionStep, why: string, rule: string | null = null): PermissionDecision => {
    if (hook !== undefined) return decide(hook.decision, "hook", hook.reason);
    const verdict = verdictWhenAsked(mode, context.canAsk);
    return { ...decide(verdict.decision, step, `${why}${verdict.outcome}`, rule), hookMayAnswer: true };
  };

  const gate = gateOf(call, context, changesNothing);
  if (gate !== null) return decide("deny", "mode", gate);
  if ([tool.name, ...(tool.aliases ?? [])].some((name) => context.disabled.includes(name))) {
    return decide("deny", "disabled", `The tool ${tool.name} is disabled here.`);
  }
  if (context.guestAllow !== undefined && isRefusedToGuests(call, context.guestAllow)) {
    return decide("deny", "role", `Guests may not use the tool ${tool.name} for this call.`);
  }
  const denied = findMatch(context.rules.deny, call);
  if (denied !== null) return decide("deny", "deny", denyReason(denied), denied.rule);
  if (mode === "plan" && tool.name === "exit_plan_mode") {
    // No rule answers: a person has to see the plan.
    return needsYes("mode", "Approval is required: with the plan, the plan mode ends.");
  }
  if (mode === "bypass" && principal !== "guest")
    return decide("allow", "mode", "This session bypasses permission checks.");

  const ask =
    findMatch(context.rules.ask, call) ?? findPossibleMatch([...context.rules.deny, ...context.rules.ask], call);
  if (ask !== null) return needsYes("ask", askReason(ask), ask.rule);
  const carried = context.tainted ? carriedBy(call, effects, context.ownerAddresses) : undefined;
  const allowed = findAllow(carried === undefined ? context.rules.allow : rulesForTaint(context.rules, call), call);
  if (allowed !== null) return decide("allow", "allow", `Rule "${allowed.rule}" allows this call.`, allowed.rule);
  if (hook?.decision === "deny") return decide("deny", "hook", hook.reason);

  if (carried !== undefined) {
    return needsYes(
      "taint",
      `Approval is required: this turn contains untrusted content, and the call ${carriedText(call, carried)}.`,
    );
  }
  if (principal === "guest" && risk !== "none") {
    return needsYes(
      "risk",
      `Approval is required: a guest or a webhook started this turn, and the risk of the call is ${risk}.`,
    );
  }
  const verdict = mode === "bypass" ? modeVerdict("default", risk) : modeVerdict(mode, risk);
  if (verdict === "allow") return decide("allow", "risk", `Calls of risk ${risk} need no approval in mode ${mode}.`);
  return needsYes("risk", `Approval is required: the risk of the call is ${risk}.`);
}

/** The reason why the mode forbids the call; null if it does not. */
function gateOf({ tool }: ParsedCall, context: PermissionContext, changesNothing: boolean): string | null {
  if (context.mode === "bypass" && !context.allowBypass) {
    return "The permission mode is bypass, but the settings do not allow it. No tool runs until an operator sets `allow_bypass = true` under [permissions] or chooses another mode.";
  }
  if (context.mode === "plan" && !changesNothing) {
    return "The session is in plan mode: only read-only tools may be used. Present your plan with exit_plan_mode; its approval ends the plan mode.";
  }
  if (context.mode === "delegate" && !startsSubagents(tool) && !talksToPeople(tool)) {
    return "The session is in delegate mode: you may only start sub-agents and talk to people. Delegate this work to a sub-agent.";
  }
  return null;
}

function verdictWhenAsked(mode: PermissionMode, canAsk: boolean): { decision: "ask" | "deny"; outcome: string } {
  if (mode === "dont_ask") {
    return { decision: "deny", outcome: " Not run: this session does not request approval." };
  }
  if (canAsk) return { decision: "ask", outcome: "" };
  return { decision: "deny", outcome: " Not run: no person can approve it here." };
}

function denyReason({ rule, why }: RuleMatch): string {
  return why === null ? `Rule "${rule}" denies this call.` : `Rule "${rule}" may deny this call: ${why}.`;
}

function askReason({ rule, why }: RuleMatch): string {
  return why === null
    ? `Rule "${rule}" requires approval.`
    : `Rule "${rule}" may apply, so approval is required: ${why}.`;
}

/** The effect by which untrusted content could act through this call; undefined if there is none. */
function carriedBy(
  call: ParsedCall,
  effects: readonly ToolEffect[],
  ownerAddresses?: ReadonlySet<string>,
): ToolEffect | undefined {
  const carried = effects.filter((effect) => carriesOn[effect] !== undefined);
  if (ownerAddresses === undefined || !isGiven(call, ownerAddresses)) return carried[0];
  // An address that the owner wrote cannot carry other data out.
  return carried.find((effect) => effect !== "sends_out");
}

/**
 * The allow rules that apply in tainted turns. People approved commands in the workspace root: in another folder the same command
 * line may run another program.
 */
function rulesForTaint({ named, approved }: TurnRules, { argument, input }: ParsedCall): TurnRules["allow"] {
  return argument.kind === "command" && input["workdir"] !== undefined ? named : [...named, ...approved];
}

function carriedText(call: ParsedCall, effect: ToolEffect): string {
  const target = effect === "sends_out" ? webTargetOf(call) : null;
  if (target === null) return carriesOn[effect] ?? "";
  return `sends a request to ${target.name}; an approval also covers further requests of ${call.tool.name} to ${target.name} in this turn`;
}

/** Descriptions of the effects by which untrusted content could act. */
const carriesOn: Partial<Record<ToolEffect, string>> = {
  executes: "runs a program",
  sends_out: "sends data to others",
  writes_memory: "changes memory",
  schedules: "schedules a job",
};
