// Settings of a session during a run: model, effort, permission mode and rules. They are restored when the run ends.

import { errorMessage, type Effort, type PermissionMode, type SessionOverrides } from "@parley/contracts";

import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";

/** Undefined: unchanged. */
export interface SessionSetup {
  readonly permissionMode?: PermissionMode | undefined;
  readonly model?: string | undefined;
  readonly fallbackModels?: readonly string[] | undefined;
  readonly effort?: Effort | undefined;
  /** Rules in addition to those of the session. */
  readonly allow?: readonly string[] | undefined;
  readonly deny?: readonly string[] | undefined;
  readonly maxModelCalls?: number | undefined;
  readonly maxCostMicros?: number | undefined;
  /** The folder to work in; the session must be new or work there already. It stays. */
  readonly workspace?: string | undefined;
}

const names = [
  "permissionMode",
  "model",
  "fallbackModels",
  "effort",
  "allow",
  "deny",
  "maxModelCalls",
  "maxCostMicros",
  "workspace",
] as const;

type Changed = Pick<SessionOverrides, (typeof names)[number]>;

export function isEmptySetup(setup: SessionSetup): boolean {
  return names.every((name) => setup[name] === undefined);
}

/** The overrides that a setup changes; its rules are added to those of the session. Pure. */
export function overridesOf(setup: SessionSetup, before: SessionOverrides): Changed {
  const { allow, deny, permissionMode, model, effort, maxModelCalls, maxCostMicros, workspace, fallbackModels } = setup;
  return {
    ...(permissionMode === undefined ? {} : { permissionMode }),
    ...(model === undefined ? {} : { model }),
    ...(fallbackModels === undefined ? {} : { fallbackModels: [...fallbackModels] }),
    ...(effort === undefined ? {} : { effort }),
    ...(maxModelCalls === undefined ? {} : { maxModelCalls }),
    ...(maxCostMicros === undefined ? {} : { maxCostMicros }),
    ...(workspace === undefined ? {} : { workspace }),
    ...(allow === undefined ? {} : { allow: joined(before.allow, allow) }),
    ...(deny === undefined ? {} : { deny: joined(before.deny, deny) }),
  };
}

function joined(before: readonly string[] = [], rules: readonly string[]): string[] {
  return [...new Set([...before, ...rules])];
}

/** The values to restore; null removes an override. Pure. */
export function restoredOverrides(changed: Changed, before: SessionOverrides): Record<string, unknown> {
  const restored = names.filter((name) => name in changed && name !== "workspace");
  return Object.fromEntries(restored.map((name) => [name, before[name] ?? null]));
}

export interface AppliedSetup {
  readonly sessionId: string;
  readonly restore: Readonly<Record<string, unknown>>;
}

/** Changes the session. Throws CliError with the reason of a refusal; then nothing is changed. */
export async function applySetup(gateway: Gateway, setup: SessionSetup, sessionId: string): Promise<AppliedSetup> {
  const { session } = await gateway.run(api.session, { id: sessionId });
  const changed = overridesOf(setup, session.overrides);
  await gateway.run(api.updateSession, { id: sessionId, overrides: changed });
  return { sessionId, restore: restoredOverrides(changed, session.overrides) };
}

/** What could not be restored, or null. Never rejects. */
export async function restoreSetup(gateway: Gateway, { sessionId, restore }: AppliedSetup): Promise<string | null> {
  try {
    await gateway.run(api.updateSession, { id: sessionId, overrides: restore });
    return null;
  } catch (error) {
    return `the settings of the session ${sessionId} were not restored: ${errorMessage(error)}`;
  }
}
