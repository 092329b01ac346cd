// Chooses the workspace of a turn and the workspace tools that guests may use. Both depend on the root turn, so that a sub-agent
// has no more access than the person it works for. Pure.
import { createHash } from "node:crypto";
import {
  folderWorkspaceId,
  mainWorkspaceId,
  parsePermissionRule,
  routeOfKey,
  type ClaimedTurn,
  type ContactRole,
  type ParleySettings,
  type TrustLevel,
} from "@parley/contracts";
import type { ParsedCall } from "./parsed-call.ts";
import { compileRules, findAllow } from "./rules.ts";
import { principalOf } from "./principal.ts";

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

/** The role that determines a turn's workspace rights. A webhook has a guest's rights: anyone can be the author of its text. */
export function roleOf(trust: TrustLevel): ContactRole {
  return trust === "webhook" ? "guest" : principalOf(trust);
}

/**
 * The workspace of a turn: the owner's, or one with an id derived from conversation and role. All sessions of a conversation, and all
 * people with this role in it, share the workspace. `folder`: the name of the folder that the session works in instead of the owner's.
 */
export function workspaceOf(
  { root, sessionKey }: Pick<ClaimedTurn, "root" | "sessionKey">,
  { share_with_users: shared }: Pick<ParleySettings["workspace"], "share_with_users">,
  folder?: string,
): string {
  const role = roleOf(root.trust);
  if (role === "owner" || (role === "user" && shared)) {
    return folder === undefined ? mainWorkspaceId : folderWorkspaceId(folder);
  }
  const route = routeOfKey(root.sessionKey ?? sessionKey);
  return createHash("sha256")
    .update(JSON.stringify(["workspace", role, route]))
    .digest("hex")
    .slice(0, 32);
}

/** The allow rules for a turn with a guest's rights: those for guests, and those of the webhook that started it. */
export function guestRules(
  { permissions, webhooks }: Pick<ParleySettings, "permissions" | "webhooks">,
  { trust, webhook }: ClaimedTurn["root"],
): readonly string[] {
  const own = trust === "webhook" && webhook !== undefined ? (webhooks[webhook]?.allow ?? []) : [];
  return [...permissions.guest_allow, ...own];
}

/** Whether guests may use a tool: any tool without workspace access, or one that `guest_allow` names without wildcards. */
export function guestsHave(
  tool: { name: string; aliases?: readonly string[] },
  guestAllow: readonly string[],
): boolean {
  return !workspaceTools.has(tool.name) || naming(tool, guestAllow).length > 0;
}

/** Whether a guest's call is refused: it uses a workspace tool, and no rule that names the tool allows the call. */
export function isRefusedToGuests(call: ParsedCall, guestAllow: readonly string[]): boolean {
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
