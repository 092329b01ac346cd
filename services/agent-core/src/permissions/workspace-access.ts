// The workspace that a turn's tools work in, and which of these tools guests have. Pure; both follow the turn at the top of the tree of
// agents, so that a sub-agent reaches no more than the person it works for.
import { createHash } from "node:crypto";
import {
  mainWorkspaceId,
  parsePermissionRule,
  routeOfKey,
  type ClaimedTurn,
  type ContactRole,
  type ParleySettings,
} from "@parley/contracts";
import type { ReadCall } from "./call.ts";
import { compileRules, findAllow } from "./rules.ts";
import { speakerOf } from "./speaker.ts";

/** The tools that read or change files, or run commands. */
export const workspaceTools: ReadonlySet<string> = new Set([
  "read",
  "ls",
  "glob",
  "grep",
  "write",
  "edit",
  "apply_patch",
  "notebook_edit",
  "exec",
  "process",
  "attach",
  "save_attachment",
]);

/** The role whose rights a turn of this trust has in workspaces. Anybody can be the author of a webhook's text: it has a guest's. */
export function roleOf(trust: string): ContactRole {
  return trust === "webhook" ? "guest" : speakerOf(trust);
}

/**
 * The workspace of a turn: the owner's, or an id derived from the conversation and the role. The id is the same in all sessions of a
 * conversation, and for everybody with this role in it.
 */
export function workspaceOf(
  { root, sessionKey }: Pick<ClaimedTurn, "root" | "sessionKey">,
  { share_with_users: shared }: ParleySettings["workspace"],
): string {
  const role = roleOf(root.trust);
  if (role === "owner" || (role === "user" && shared)) return mainWorkspaceId;
  const route = routeOfKey(root.sessionKey ?? sessionKey);
  return createHash("sha256")
    .update(JSON.stringify(["workspace", role, route]))
    .digest("hex")
    .slice(0, 32);
}

/** The rules that name what a turn with a guest's rights may do: those for guests, and those of the webhook that began it. */
export function guestRules(
  { permissions, webhooks }: Pick<ParleySettings, "permissions" | "webhooks">,
  { trust, webhook }: ClaimedTurn["root"],
): readonly string[] {
  const own = trust === "webhook" && webhook !== undefined ? (webhooks[webhook]?.allow ?? []) : [];
  return [...permissions.guest_allow, ...own];
}

/** Whether guests have a tool: one that touches no workspace, or that a rule of `guest_allow` names. A wildcard names none. */
export function guestsHave(
  tool: { name: string; aliases?: readonly string[] },
  guestAllow: readonly string[],
): boolean {
  return !workspaceTools.has(tool.name) || naming(tool, guestAllow).length > 0;
}

/** Whether a call is refused because a guest made it: of a workspace tool, and no rule that names the tool allows the call. */
export function isRefusedToGuests(call: ReadCall, guestAllow: readonly string[]): boolean {
  if (!workspaceTools.has(call.tool.name)) return false;
  return findAllow(compileRules({ allow: naming(call.tool, guestAllow) }).allow, call) === null;
}

function naming(
  { name, aliases = [] }: { name: string; aliases?: readonly string[] },
  rules: readonly string[],
): string[] {
  return rules.filter((text) => {
    const parsed = parsePermissionRule(text);
    return "rule" in parsed && [name, ...aliases].includes(parsed.rule.tool);
  });
}
