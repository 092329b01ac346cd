// Derives a turn's role, the rules that apply to it, and whether its input is trusted. Pure.
import {
  namesOneTool,
  parsePermissionRule,
  type PermissionSettings,
  type SessionOverrides,
  type TrustLevel,
} from "@parley/contracts";
import type { Principal } from "./decide.ts";
import { compileRules, type Rules } from "./rules.ts";
import { traitsOf, type PermissionTool } from "./tool-traits.ts";

/**
 * The role for a turn's trust, which is a person's role or another origin of its input. Jobs and heartbeats have the owner's rights,
 * since an owner approved them. For a sub-agent's turn pass the trust of the root turn. A webhook has a guest's rights: its sender
 * signs text that others wrote.
 */
export function principalOf(trust: TrustLevel): Principal {
  if (trust === "owner" || trust === "cron" || trust === "heartbeat") return "owner";
  if (trust === "user" || trust === "subagent") return "user";
  return "guest";
}

/** Whether input of this trust is untrusted content in itself. */
export function isUntrusted(trust: TrustLevel): boolean {
  return principalOf(trust) === "guest";
}

/** Whether a result of this tool taints the turn that reads it, and the turns of its sub-agents. */
export function isTaintSource(tool: PermissionTool): boolean {
  return traitsOf(tool).effects.includes("reads_untrusted");
}

/** The rules that apply to one turn. */
export interface TurnRules extends Rules {
  /** The part of `allow` from settings whose rules name their tool in full. They also apply in tainted turns. */
  named: Rules["allow"];
  /** The part of `allow` that people approved in a tainted turn, for the session or the turn. They also apply in tainted turns. */
  approved: Rules["allow"];
}

/** Rules that neither the settings nor the session contain. */
export interface TurnGrants {
  /** The webhook's own `allow` list; undefined if no webhook started the turn. */
  webhook?: readonly string[];
  /** Rules granted by approvals in this turn, until its end. */
  turn?: readonly string[];
}

/**
 * The rules for a turn of this role. For a guest, allow rules come only from `guest_allow` and from "always" approvals of the session.
 * A webhook additionally has its own list, but no "always" approvals: people gave those for other input.
 */
export function rulesFor(
  principal: Principal,
  settings: Pick<PermissionSettings, "allow" | "ask" | "deny" | "guest_allow">,
  session: Pick<SessionOverrides, "allow" | "allowTainted" | "ask" | "deny">,
  grants: TurnGrants = {},
): TurnRules {
  const { webhook, turn = [] } = grants;
  const own = [...(principal === "guest" ? [] : settings.allow), ...settings.guest_allow, ...(webhook ?? [])];
  const always = webhook === undefined ? (session.allow ?? []).filter(isExactCommand) : [];
  const approved = [...(webhook === undefined ? (session.allowTainted ?? []) : []), ...turn];
  const { ask, deny } = session;
  return {
    ...compileRules({ ...settings, allow: [...own, ...always, ...approved] }, { ask, deny }),
    named: compileRules({ allow: own.filter(namesOneTool) }).allow,
    approved: compileRules({ allow: approved }).allow,
  };
}

/** Excludes wildcard rules that earlier versions created for "always": the options they cover can start other programs. */
function isExactCommand(text: string): boolean {
  const parsed = parsePermissionRule(text);
  if (!("rule" in parsed) || parsed.rule.tool !== "exec" || parsed.rule.pattern === null) return true;
  return !/[*?]/.test(parsed.rule.pattern.replaceAll(/\\./gs, ""));
}
