// Decides whether a tool call may run: a waterfall whose first decision wins. Pure; asking people and hooks is the caller's.
//
// 1 mode      plan, delegate, and a bypass nobody allowed, forbid
// 2 disabled  tools that are switched off
//   role      guests have no file and command tools, unless `guest_allow` names them; nothing below undoes that
// 3 deny      rules of settings and session; nothing below and no hook undoes one
//             (bypass, when it is allowed, runs the rest; guests have no bypass)
// 4 rules     ask, then allow; for taint only allow rules that name their tool, and what people approved in a tainted turn
// 5 hook      PermissionRequest, where a yes would be needed: the caller asks it and decides again with its answer
// 6 taint     the turn has read untrusted content and the call could carry it on
// 7 matrix    mode × risk; for guests everything above `none` needs a yes
//
// A yes that nobody can give is a no.
import type { PermissionMode, ToolEffect, ToolRisk } from "@parley/contracts";
import type { ReadCall } from "./call.ts";
import { modeVerdict } from "./matrix.ts";
import { assess } from "./risk.ts";
import { findAllow, findHidden, findHit, type RuleHit } from "./rules.ts";
import type { TurnRules } from "./speaker.ts";
import { startsSubagents } from "./tool-facts.ts";
import { isGiven, webTargetOf } from "./web-access.ts";
import { isRefusedToGuests } from "./workspace-access.ts";

export type Speaker = "owner" | "user" | "guest";

export interface PermissionContext {
  mode: PermissionMode;
  allowBypass: boolean;
  /** Names of tools that are switched off. */
  disabled: readonly string[];
  /** Of settings and session, for this speaker: `rulesFor`. */
  rules: TurnRules;
  /** Whose word the turn is. */
  speaker: Speaker;
  /** The turn has read untrusted content, and the settings mind: `isTainted`. */
  tainted: boolean;
  /** Addresses that an owner gave in this conversation: `addressesGivenIn`. Left out: none. */
  given?: ReadonlySet<string>;
  /** What a turn with a guest's rights is granted by name, `guestRules`; only where the turn has a guest's rights in workspaces; left out: it has more. */
  guestAllow?: readonly string[];
  /** Somebody can be asked: an owner is reachable, and the turn may wait. */
  canAsk: boolean;
  /** How the conversation at work may be named in the argument `to`; such messages are answers. */
  ownAddresses?: readonly string[];
  /** What a PermissionRequest hook has said; left out: none was asked, or it had no opinion. */
  hook?: HookVerdict;
}

export interface HookVerdict {
  decision: "allow" | "deny";
  /** For the model. */
  reason: string;
  /** The call with the arguments the hook wants instead; judged in place of the one that was asked about. */
  updated?: ReadCall;
}

type PermissionStep = "mode" | "disabled" | "role" | "deny" | "ask" | "allow" | "hook" | "taint" | "matrix";

export interface PermissionDecision {
  decision: "allow" | "deny" | "ask";
  /** For the model and for the person who is asked. */
  reason: string;
  /** Which step of the waterfall decided. */
  step: PermissionStep;
  /** The rule, where one decided. */
  rule: string | null;
  risk: ToolRisk;
  /** A PermissionRequest hook may decide this: ask it, then decide again with `hook`. */
  hookMayAnswer: boolean;
  /** Run with these arguments: a hook has changed them. */
  updatedInput?: ReadCall["input"];
}

/** Says whether the call may run. Asks nobody; `ask` and `hookMayAnswer` tell the caller whom to ask. */
export function decidePermission(asked: ReadCall, context: PermissionContext): PermissionDecision {
  const { mode, speaker, hook } = context;
  const call = hook?.updated ?? asked;
  const { tool } = call;
  const { risk, effects, changesNothing } = assess(call, context.ownAddresses);
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
    const verdict = askVerdict(mode, context.canAsk);
    return { ...decide(verdict.decision, step, `${why} ${verdict.outcome}`, rule), hookMayAnswer: true };
  };

  const gate = gateOf(call, context, changesNothing);
  if (gate !== null) return decide("deny", "mode", gate);
  if ([tool.name, ...(tool.aliases ?? [])].some((name) => context.disabled.includes(name))) {
    return decide("deny", "disabled", `The tool ${tool.name} is switched off here.`);
  }
  if (context.guestAllow !== undefined && isRefusedToGuests(call, context.guestAllow)) {
    return decide("deny", "role", `Guests do not have the tool ${tool.name} for this call.`);
  }
  const denied = findHit(context.rules.deny, call);
  if (denied !== null) return decide("deny", "deny", denyReason(denied), denied.rule);
  if (mode === "bypass" && speaker !== "guest") return decide("allow", "mode", "This session asks for no permissions.");

  const ask = findHit(context.rules.ask, call) ?? findHidden([...context.rules.deny, ...context.rules.ask], call);
  if (ask !== null) return needsYes("ask", askReason(ask), ask.rule);
  const carried = context.tainted ? carriedBy(call, effects, context.given) : undefined;
  const allowed = findAllow(carried === undefined ? context.rules.allow : rulesForTaint(context.rules, call), call);
  if (allowed !== null) return decide("allow", "allow", `The rule ${allowed.rule} allows this call.`, allowed.rule);
  if (hook?.decision === "deny") return decide("deny", "hook", hook.reason);

  if (carried !== undefined) {
    return needsYes("taint", `This turn contains untrusted content, and the call ${carriedText(call, carried)}.`);
  }
  if (speaker === "guest" && risk !== "none") {
    return needsYes("matrix", `A guest or a webhook began this turn, and the call is ${risk} in risk.`);
  }
  const verdict = mode === "bypass" ? modeVerdict("default", risk) : modeVerdict(mode, risk);
  if (verdict === "allow") return decide("allow", "matrix", `Calls of ${risk} risk run unasked in the mode ${mode}.`);
  return needsYes("matrix", `The call is ${risk} in risk.`);
}

/** What the mode forbids before anything else is looked at. */
function gateOf({ tool }: ReadCall, context: PermissionContext, changesNothing: boolean): string | null {
  if (context.mode === "bypass" && !context.allowBypass) {
    return "The permission mode is bypass, but the settings do not allow it: an operator has to set `allow_bypass = true` under [permissions], or choose another mode. No tool runs until then.";
  }
  if (context.mode === "plan" && !changesNothing) {
    return "The session is in plan mode: only tools that read may be used. Say what you would do, and ask for the mode to be changed.";
  }
  if (context.mode === "delegate" && !startsSubagents(tool)) {
    return "The session is in delegate mode: you may only start sub-agents. Give this work to one.";
  }
  return null;
}

function askVerdict(mode: PermissionMode, canAsk: boolean): { decision: "ask" | "deny"; outcome: string } {
  if (mode === "dont_ask") {
    return { decision: "deny", outcome: "It needs a person's yes, and this session asks nobody: it was not run." };
  }
  if (canAsk) return { decision: "ask", outcome: "It needs a person's yes." };
  return { decision: "deny", outcome: "It needs a person's yes, and nobody can be asked here: it was not run." };
}

function denyReason({ rule, why }: RuleHit): string {
  return why === null ? `The rule ${rule} forbids this call.` : `The rule ${rule} may forbid this call: ${why}.`;
}

function askReason({ rule, why }: RuleHit): string {
  return why === null ? `The rule ${rule} asks for a yes.` : `The rule ${rule} may be about this: ${why}.`;
}

/** The effect by which untrusted content could act through this call; undefined when there is none. */
function carriedBy(
  call: ReadCall,
  effects: readonly ToolEffect[],
  given?: ReadonlySet<string>,
): ToolEffect | undefined {
  const carried = effects.filter((effect) => carriesOn[effect] !== undefined);
  if (given === undefined || !isGiven(call, given)) return carried[0];
  // An address that the owner wrote contains nothing else.
  return carried.find((effect) => effect !== "sends_out");
}

/**
 * The allow rules that may answer for taint. What people approved is a command in the workspace's own folder: in another one the
 * same words may run another program.
 */
function rulesForTaint({ named, approved }: TurnRules, { argument, input }: ReadCall): TurnRules["allow"] {
  return argument.kind === "command" && input["workdir"] !== undefined ? named : [...named, ...approved];
}

function carriedText(call: ReadCall, effect: ToolEffect): string {
  const target = effect === "sends_out" ? webTargetOf(call) : null;
  if (target === null) return carriesOn[effect] ?? "";
  return `sends a request to ${target.name}; an approval also covers further requests of ${call.tool.name} to ${target.name} in this turn`;
}

/** The effects by which untrusted content could act, in words. */
const carriesOn: Partial<Record<ToolEffect, string>> = {
  executes: "runs a program",
  sends_out: "sends something to others",
  writes_memory: "changes what is remembered",
  schedules: "plans something for later",
};
