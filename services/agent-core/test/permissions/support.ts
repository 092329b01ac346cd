// Calls and contexts for the permission tests.
import { parseCall, type ParsedCall } from "../../src/policy/parsed-call.ts";
import { decidePermission, type PermissionContext, type PermissionDecision } from "../../src/policy/decide.ts";
import { namesOneTool } from "@parley/contracts";
import { compileRules, type RuleLists, type Rules } from "../../src/policy/rules.ts";
import type { TurnRules } from "../../src/policy/principal.ts";
import type { PermissionTool } from "../../src/policy/tool-traits.ts";

/** `exec` without a sandbox has high risk, so that only a rule can allow it. */
export const bareExec: PermissionTool = { name: "exec", readOnly: false, aliases: ["Bash"] };
export const walledExec: PermissionTool = { ...bareExec, contained: true };
export const write: PermissionTool = { name: "write", readOnly: false };

type Changes = Omit<Partial<PermissionContext>, "rules"> & { rules?: Rules | TurnRules };

/** Rules of `compileRules` count as rules of the settings. */
export function context({ rules = compileRules(), ...changes }: Changes = {}): PermissionContext {
  const named = rules.allow.filter(({ text }) => namesOneTool(text));
  return {
    mode: "default",
    allowBypass: false,
    disabled: [],
    rules: "named" in rules ? rules : { ...rules, named, approved: [] },
    principal: "owner",
    tainted: false,
    canAsk: true,
    ...changes,
  };
}

export function command(line: string, tool: PermissionTool = bareExec): Promise<ParsedCall> {
  return parseCall(tool, { command: line });
}

/** The decision about a command line of `exec` without a sandbox. */
export async function decideCommand(line: string, rules: RuleLists): Promise<PermissionDecision> {
  return decidePermission(await command(line), context({ rules: compileRules(rules) }));
}
