// The rules that apply to the calls of a turn: its principal, mode and grants, for the permission engine and the tool-runners.
import { createHash } from "node:crypto";
import type { ClaimedTurn, ParleySettings } from "@parley/contracts";
import type { PermissionContext } from "../policy/decide.ts";
import { filePatterns } from "../policy/rules.ts";
import { rulesFor, principalOf, type TurnGrants } from "../policy/principal.ts";
import { reachesWeb } from "../policy/web-access.ts";
import { guestRules, roleOf } from "../policy/workspace-access.ts";
import { formatAddress } from "../prompt/message-header.ts";
import type { TurnTool } from "../tools/toolbox.ts";
import { isContainedFor, isTainted, permissionTool } from "../policy/taint.ts";
import type { AuthorizationContext } from "./authorize-call.ts";

/** What the permission engine evaluates a call of this tool by. */
export function permissionContext(
  settings: ParleySettings,
  context: AuthorizationContext,
  tool: TurnTool,
): PermissionContext {
  const { turn, policy, overrides } = context;
  const principal = principalOf(turn.root.trust);
  const addresses = [turn.replyTo, turn.root.replyTo, ...turn.alsoTo].filter((address) => address !== null);
  const tainted = settings.permissions.taint && isTainted(turn, context.taint);
  return {
    mode: policy.permissionMode,
    allowBypass: settings.permissions.allow_bypass,
    disabled: settings.tools.disabled,
    rules: rulesFor(principal, settings.permissions, overrides, grantsOf(settings, turn)),
    principal,
    contained: settings.permissions.contained,
    tainted,
    ...(tainted && reachesWeb(tool.descriptor) ? { ownerAddresses: context.ownerAddresses() } : {}),
    canAsk: turn.root.approvals !== "none",
    ...(roleOf(turn.root.trust) === "guest" ? { guestAllow: guestRules(settings, turn.root) } : {}),
    ownAddresses: addresses.map(formatAddress),
  };
}

/** SHA-256 of the rules and the mode that apply to the turn, without the turn's grants in `except`. */
export function rulesRevision(
  { permissions, tools, webhooks }: ParleySettings,
  { turn, policy, overrides }: AuthorizationContext,
  except: readonly string[] = [],
): string {
  const { allow, allow_bypass, ask, contained, deny, guest_allow } = permissions;
  const ofSettings = [allow_bypass, allow, ask, contained, deny, guest_allow, tools.disabled];
  const ofSession = [overrides.allow, overrides.allowTainted, overrides.ask, overrides.deny];
  const granted = (turn.granted ?? []).filter((rule) => !except.includes(rule));
  const ofTurn = [granted.toSorted(), webhooks[turn.root.webhook ?? ""]?.allow];
  const all = JSON.stringify([policy.permissionMode, ofSettings, ofSession, ofTurn]);
  return createHash("sha256").update(all).digest("hex");
}

/** From the turn at the root of the tree: a sub-agent has no other rights. */
function grantsOf(settings: ParleySettings, { root, granted }: ClaimedTurn): TurnGrants {
  const own = root.webhook === undefined ? [] : (settings.webhooks[root.webhook]?.allow ?? []);
  return {
    ...(root.trust === "webhook" ? { webhook: own } : {}),
    ...(granted === undefined ? {} : { turn: granted }),
  };
}

/** Patterns of paths that the turn's deny rules close for the tool; the tool-runner enforces them on resolved paths. */
export function deniedPaths(
  settings: ParleySettings,
  { turn, overrides, toolbox }: Pick<AuthorizationContext, "turn" | "overrides" | "toolbox">,
  tool: TurnTool,
): string[] {
  const { deny } = rulesFor(principalOf(turn.root.trust), settings.permissions, overrides);
  return filePatterns(deny, permissionTool(tool, isContainedFor(turn, toolbox)));
}
