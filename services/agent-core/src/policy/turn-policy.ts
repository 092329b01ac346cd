// The policy of a session's turns, merged from the settings, the profile and the session's overrides. Pure.
import {
  readerProfileName,
  type Effort,
  type IsolationLevel,
  type OutputMode,
  type ParleySettings,
  type PermissionMode,
  type ProgramAgent,
  type ProfileSettings,
  type QueueMode,
  type SessionState,
  type StartedAgent,
  type ToolExecution,
} from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import type { Limits } from "../limits/limits.ts";

export interface TurnPolicy {
  /** Null: the agent itself. */
  profile: string | null;
  depth: number;
  /** Omitted: the agent's own. */
  model: string | undefined;
  /** A person chose the model: there is no failover to another one. */
  pinned: boolean;
  /** Models that replace it when it fails; omitted: those of the settings, unless it is pinned. */
  fallbacks: readonly string[] | undefined;
  effort: Effort | undefined;
  thinking: "off" | "adaptive";
  maxOutputTokens: number;
  /** Custom instructions, after Parley's own sections. */
  systemPrompt: string | undefined;
  prompt: "full" | "minimal";
  output: OutputMode;
  limits: Limits;
  execution: ToolExecution;
  /** Minimum isolation of commands; omitted: the tool-runner's setting. */
  minIsolation: IsolationLevel | undefined;
  permissionMode: PermissionMode;
  /** The name of the folder that the session works in; omitted: the workspace. */
  folder: string | undefined;
  /** What happens to input while the session is busy. */
  queueMode: QueueMode;
  /** Whether the policy permits a tool of this name; lists may also name it by an alias. */
  hasTool(name: string, aliases?: readonly string[]): boolean;
}

/** The built-in profile: six read-only tools. */
export const readerProfile: ProfileSettings = {
  description: "Reads files and memory, and changes nothing",
  tools: ["read", "grep", "glob", "ls", "memory_search", "memory_get"],
  prompt: "minimal",
};

/** The profiles of a deployment, by name. */
export function profilesOf(settings: ParleySettings): Record<string, ProfileSettings> {
  return { [readerProfileName]: readerProfile, ...settings.profiles };
}

/** The fields of a session that determine its policy. */
type PolicyOf = Pick<SessionState, "parentId" | "profile" | "depth" | "overrides">;

/** A session of the agent itself without overrides. */
const untouched: PolicyOf = { parentId: null, profile: null, depth: 0, overrides: {} };

export function mainPolicy(settings: ParleySettings): TurnPolicy {
  return resolvePolicy(settings, untouched);
}

/** Tools that a sub-agent has only if its profile names them: those that reach people, `sleep` and `cron`. */
const notForChildren = new Set(["message", "speak", "ask_user", "sleep", "cron"]);

export function resolvePolicy(settings: ParleySettings, session: PolicyOf): TurnPolicy {
  const { agent, limits, tools, subagents } = settings;
  const { overrides, depth } = session;
  const child = session.parentId !== null;
  const { programAgent } = overrides;
  const ofSettings = session.profile === null ? undefined : profilesOf(settings)[session.profile];
  const profile = programAgent === undefined ? ofSettings : profileOfAgent(programAgent, settings);
  const ofProfile = profile?.tools ?? readerProfile.tools ?? [];
  const scope = child || profile !== undefined ? ofProfile : agent.tools;
  const isDeepest = depth >= subagents.max_depth;
  return {
    profile: session.profile,
    depth,
    model: overrides.model ?? profile?.model,
    pinned: overrides.model !== undefined,
    fallbacks: overrides.fallbackModels,
    effort: overrides.effort ?? profile?.effort ?? agent.effort,
    thinking: profile?.thinking ?? agent.thinking,
    maxOutputTokens: profile?.max_output_tokens ?? agent.max_output_tokens,
    systemPrompt: profile?.system_prompt ?? agent.system_prompt,
    prompt: child ? (profile?.prompt ?? "minimal") : "full",
    // A sub-agent's last text is its result; it does not send messages to people.
    output: child ? "final_text" : settings.output.mode,
    limits: {
      maxIterations: lower(
        profile?.max_iterations ?? (child ? subagents.max_iterations : limits.max_iterations),
        overrides.maxModelCalls,
      ),
      maxToolCalls: profile?.max_tool_calls ?? limits.max_tool_calls,
      maxTokens: limits.max_tokens,
      maxMicroUsd: toMicroUsd(profile?.max_usd ?? (child ? 0 : limits.max_usd)),
      maxTreeMicroUsd: lower(toMicroUsd(limits.max_usd), overrides.maxCostMicros),
      maxMicroUsdPerDay: toMicroUsd(limits.max_usd_per_day),
      // The session of a sub-agent belongs to its parent's.
      maxIterationsPerSession: child ? 0 : limits.max_iterations_per_session,
      maxMicroUsdPerSession: child ? 0 : toMicroUsd(limits.max_usd_per_session),
      maxTurnMs: (profile?.max_turn_seconds ?? limits.max_turn_seconds) * 1_000,
      maxRoundsWithoutTools: limits.max_rounds_without_tools,
      maxRepeatedCalls: limits.max_repeated_calls,
    },
    execution: profile?.execution ?? tools.execution,
    minIsolation: profile?.min_isolation,
    queueMode: overrides.queueMode ?? settings.queue.mode,
    permissionMode: overrides.permissionMode ?? settings.permissions.mode,
    folder: overrides.workspace,
    hasTool(name, aliases = []) {
      const isIn = (list: readonly string[]) => [name, ...aliases].some((each) => list.includes(each));
      if (isIn(tools.disabled)) return false;
      if (!tools.enabled.includes("*") && !isIn(tools.enabled)) return false;
      // Every call would be refused.
      if (isDeepest && name === subagents.tool_name) return false;
      if (programAgent !== undefined) return programAgentHas(settings, programAgent, [name, ...aliases]);
      if (scope === undefined) return true;
      if (isIn(scope)) return true;
      return scope.includes("*") && !(child && notForChildren.has(name));
    },
  };
}

/** A sub-agent that a program defines. It has no rights and limits that a profile of the settings would not have by default. */
function profileOfAgent(
  { description, prompt, tools = ["*"], model, effort, maxModelCalls }: ProgramAgent,
  { subagents }: ParleySettings,
): ProfileSettings {
  const max_iterations = lower(subagents.max_iterations, maxModelCalls);
  const fixed = { description, system_prompt: prompt, prompt: "minimal" as const, tools, max_iterations };
  return { ...fixed, ...omitUndefined({ model, effort }) };
}

/** `names`: those of one tool, its own first. The tools of the agent that starts the sub-agent are the most that it can have. */
function programAgentHas(
  settings: ParleySettings,
  { base, tools = ["*"], disallowedTools = [] }: StartedAgent,
  names: readonly string[],
): boolean {
  if (names.some((name) => disallowedTools.some((entry) => matches(entry, name)))) return false;
  // Of the agent itself, undefined means all tools.
  const ofBase =
    base === null ? settings.agent.tools : (profilesOf(settings)[base]?.tools ?? readerProfile.tools ?? []);
  const isForAll = !names.some((name) => notForChildren.has(name));
  const baseHas =
    names.some((name) => ofBase?.includes(name)) || ((ofBase?.includes("*") ?? true) && (isForAll || base === null));
  const isListed = tools.some((entry) => (entry === "*" ? isForAll : names.some((name) => matches(entry, name))));
  return baseHas && isListed;
}

/** `entry`: a name, or the beginning of names followed by `*`. */
function matches(entry: string, name: string): boolean {
  return entry.endsWith("*") ? name.startsWith(entry.slice(0, -1)) : entry === name;
}

/** The lower of two limits; 0 and undefined: no limit. */
function lower(limit: number, other: number | undefined): number {
  if (other === undefined) return limit;
  return limit === 0 ? other : Math.min(limit, other);
}

function toMicroUsd(usd: number): number {
  return Math.round(usd * 1_000_000);
}
