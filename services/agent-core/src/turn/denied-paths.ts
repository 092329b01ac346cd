// Paths that a turn's deny rules close for a tool; the tool-runner enforces them on resolved paths.
import type { ParleySettings } from "@parley/contracts";
import { filePatterns } from "../permissions/rules.ts";
import { rulesFor, speakerOf } from "../permissions/speaker.ts";
import type { PermitContext } from "./permit.ts";
import type { TurnTool } from "./toolbox.ts";
import { isContainedFor, permissionTool } from "./trust.ts";

/** Patterns of paths that the tool may not access in this turn. */
export function deniedPaths(
  settings: ParleySettings,
  { turn, overrides, toolbox }: Pick<PermitContext, "turn" | "overrides" | "toolbox">,
  tool: TurnTool,
): string[] {
  const { deny } = rulesFor(speakerOf(turn.root.trust), settings.permissions, overrides);
  return filePatterns(deny, permissionTool(tool, isContainedFor(turn, toolbox)));
}
