// Whose word a turn is, how far its rules hold, and whether what it has read may be trusted. Pure.
import type { PermissionSettings, SessionOverrides } from "@parley/contracts";
import type { Speaker } from "./decide.ts";
import { compileRules, type Rules } from "./rules.ts";
import { factsOf, type PermissionTool } from "./tool-facts.ts";

/**
 * `trust` is a turn's: a person's role, or what else it comes from. Jobs and the agent's own doings are an owner's, who said
 * yes to them; a sub-agent's turn should be judged by the trust of the turn at the top of its tree. A webhook speaks as a
 * user, in a turn that is tainted from the start. An unknown trust is a guest's.
 */
export function speakerOf(trust: string): Speaker {
  if (trust === "owner" || trust === "cron" || trust === "heartbeat") return "owner";
  if (trust === "user" || trust === "webhook" || trust === "subagent") return "user";
  return "guest";
}

/** What comes in by itself is untrusted when others write it. */
export function isUntrusted(trust: string): boolean {
  return trust === "webhook" || speakerOf(trust) === "guest";
}

/** A result of this tool taints the turn it is read in, and its sub-agents' turns. */
export function taints(tool: PermissionTool): boolean {
  return factsOf(tool).effects.includes("reads_untrusted");
}

/** The rules that hold for a speaker. What the settings allow, they do not allow guests; what a person said "always" to, holds. */
export function rulesFor(
  speaker: Speaker,
  settings: Pick<PermissionSettings, "allow" | "ask" | "deny" | "guest_allow">,
  session: Pick<SessionOverrides, "allow" | "ask" | "deny">,
): Rules {
  const { allow, ask, deny, guest_allow } = settings;
  return compileRules({ allow: speaker === "guest" ? guest_allow : [...allow, ...guest_allow], ask, deny }, session);
}
