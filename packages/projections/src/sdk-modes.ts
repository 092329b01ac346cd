// The permission modes in the spelling of the Claude Agent SDK. Pure.
import { permissionModes, type PermissionMode } from "@parley/contracts";

const spelled = {
  default: "default",
  accept_edits: "acceptEdits",
  plan: "plan",
  dont_ask: "dontAsk",
  bypass: "bypassPermissions",
  delegate: "delegate",
} as const satisfies Record<PermissionMode, string>;

export type SdkMode = (typeof spelled)[PermissionMode];

/** The mode in the SDK's spelling. `delegate` exists only here. */
export function sdkModeOf(mode: PermissionMode): SdkMode {
  return spelled[mode];
}

/** The names of all modes in Parley's and in the SDK's spelling. */
export const permissionModeNames: readonly string[] = [...new Set([...permissionModes, ...Object.values(spelled)])];

/** The mode for its name in Parley's or the SDK's spelling; undefined for any other name. */
export function readPermissionMode(name: string): PermissionMode | undefined {
  return permissionModes.find((mode) => mode === name || spelled[mode] === name);
}
