// Whose rights a turn has, which rules apply to it, and whether what it has read may be trusted. Pure.
import { namesOneTool, parsePermissionRule, type PermissionSettings, type SessionOverrides } from "@parley/contracts";
import type { Speaker } from "./decide.ts";
import { compileRules, type Rules } from "./rules.ts";
import { factsOf, type PermissionTool } from "./tool-facts.ts";

/**
 * `trust` is a turn's: a person's role, or where else its input comes from. Jobs and heartbeats have the owner's rights, since an
 * owner approved them; a sub-agent's turn is to be judged by the trust of the turn at the top of its tree. A webhook has a
 * guest's rights: its sender signs text that others wrote. An unknown trust is a guest's.
 */
export function speakerOf(trust: string): Speaker {
  if (trust === "owner" || trust === "cron" || trust === "heartbeat") return "owner";
  if (trust === "user" || trust === "subagent") return "user";
  return "guest";
}

/** True where input of this trust is untrusted content by itself. */
export function isUntrusted(trust: string): boolean {
  return speakerOf(trust) === "guest";
}

/** A result of this tool taints the turn it is read in, and its sub-agents' turns. */
export function taints(tool: PermissionTool): boolean {
  return factsOf(tool).effects.includes("reads_untrusted");
}

/** The rules that apply to one turn. */
export interface TurnRules extends Rules {
  /** Of `allow`: rules of the settings that name their tool in full. They also answer for taint. */
  named: Rules["allow"];
  /** Of `allow`: what people approved in a tainted turn, for this session or until the turn ends. They also answer for taint. */
  approved: Rules["allow"];
}

/** What else than role and settings decides which rules apply. */
export interface TurnGrants {
  /** The webhook's own `allow` list; left out: no webhook began the turn. */
  webhook?: readonly string[];
  /** Rules that approvals given in this turn grant until its end. */
  turn?: readonly string[];
}

/**
 * The rules that apply to a turn of this speaker. A guest has only `guest_allow` of the settings, and what a person allowed with
 * "always" in the session. A webhook also has its own list, but nothing that was allowed with "always": a person who did so had
 * another input in mind.
 */
export function rulesFor(
  speaker: Speaker,
  settings: Pick<PermissionSettings, "allow" | "ask" | "deny" | "guest_allow">,
  session: Pick<SessionOverrides, "allow" | "allowTainted" | "ask" | "deny">,
  grants: TurnGrants = {},
): TurnRules {
  const { webhook, turn = [] } = grants;
  const own = [...(speaker === "guest" ? [] : settings.allow), ...settings.guest_allow, ...(webhook ?? [])];
  const always = webhook === undefined ? (session.allow ?? []).filter(isExactCommand) : [];
  const approved = [...(webhook === undefined ? (session.allowTainted ?? []) : []), ...turn];
  const { ask, deny } = session;
  return {
    ...compileRules({ ...settings, allow: [...own, ...always, ...approved] }, { ask, deny }),
    named: compileRules({ allow: own.filter(namesOneTool) }).allow,
    approved: compileRules({ allow: approved }).allow,
  };
}

/** Earlier versions made rules such as `exec(git status *)` of "always": the options they cover start other programs. */
function isExactCommand(text: string): boolean {
  const parsed = parsePermissionRule(text);
  if (!("rule" in parsed) || parsed.rule.tool !== "exec" || parsed.rule.pattern === null) return true;
  return !/[*?]/.test(parsed.rule.pattern.replaceAll(/\\./gs, ""));
}
