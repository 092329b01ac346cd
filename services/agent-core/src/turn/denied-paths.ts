// Paths that a turn's deny rules close for a tool; the tool-runner enforces them on resolved paths.
import type { ParleySettings } from "@parley/contracts";
import { filePatterns } from "../policy/rules.ts";
import { rulesFor, principalOf } from "../policy/principal.ts";
import type { AuthorizationContext } from "./authorize-call.ts";
import type { TurnTool } from "../tools/toolbox.ts";
import { isContainedFor, permissionTool } from "../policy/taint.ts";

/** Patterns of paths that the tool may not access in this turn. */
export function deniedPaths(
  settings: ParleySettings,
  { turn, overrides, toolbox }: Pick<AuthorizationContext, "turn" | "overrides" | "toolbox">,
  tool: TurnTool,
): string[] {
  const { deny } = rulesFor(principalOf(turn.root.trust), settings.permissions, overrides);
  return filePatterns(deny, permissionTool(tool, isContainedFor(turn, toolbox)));
}
