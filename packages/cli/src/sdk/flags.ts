// The command line of the executable that Claude Agent SDKs start, as options of a run. A flag is honoured, accepted because nothing
// depends on it here, or refused with the place where the cluster has that setting.

import {
  answerInstructions,
  type AnswerSchema,
  builtInToolNames,
  efforts,
  errorMessage,
  ownToolName,
  parsePermissionRule,
} from "@parley/contracts";
import { readPermissionMode } from "@parley/projections";
import { parseJson } from "@parley/kit";

import { UsageError } from "../io/io.ts";
import { type OutputFormat, outputFormats, profileOfSession, readDollars, type RunOptions } from "../run/options.ts";
import { readAnswerSchema } from "../run/structured-output.ts";
import { programServers } from "./mcp-config.ts";

/** Flags without a value that change nothing. */
const switches = new Set([
  "print",
  "p",
  "verbose",
  "debug",
  "d",
  "d2e",
  "debug-to-stderr",
  "await-initialize",
  "allow-dangerously-skip-permissions",
  "enable-auth-status",
]);
/** Flags with a value that change nothing: they concern the SDK's own settings files, logs and display. */
const valued = new Set(["debug-file", "setting-sources", "thinking-display"]);

/** Honoured flags. */
const flagNames = new Set([
  "output-format",
  "input-format",
  "include-partial-messages",
  "replay-user-messages",
  "include-hook-events",
  "permission-mode",
  "dangerously-skip-permissions",
  "permission-prompt-tool",
  "permission-prompts",
  "model",
  "fallback-model",
  "agent",
  "effort",
  "thinking",
  "max-turns",
  "max-budget-usd",
  "resume",
  "r",
  "continue",
  "c",
  "fork-session",
  "allowedTools",
  "disallowedTools",
  "tools",
  "append-system-prompt",
  "system-prompt",
  "mcp-config",
  "strict-mcp-config",
  "json-schema",
]);
const withoutValue = new Set([
  ...switches,
  "include-partial-messages",
  "replay-user-messages",
  "include-hook-events",
  "dangerously-skip-permissions",
  "continue",
  "c",
  "fork-session",
  "strict-mcp-config",
]);
const spellings: Readonly<Record<string, string>> = {
  "allowed-tools": "allowedTools",
  "disallowed-tools": "disallowedTools",
  r: "resume",
  c: "continue",
};

/** Refused flags, with what to do instead. */
const refusals: Readonly<Record<string, string>> = {
  "max-thinking-tokens": "reasoning is controlled by --effort",
  "task-budget": "use --max-budget-usd or --max-turns",
  betas: "the cluster chooses the features of the model's API",
  "session-id": "Parley names sessions; read the session_id of the first message",
  "resume-session-at": "resume the whole session, or copy it with --fork-session",
  "resume-drops-turn": "resume the whole session, or copy it with --fork-session",
  "no-session-persistence": "Parley stores every session; `[session] call_retention_days` deletes those of runs",
  "session-mirror": "Parley stores every session itself",
  "project-config-root": "settings belong to parley.toml",
  "add-dir": "tools run in the cluster's workspace",
  agents: "define profiles of sub-agents in parley.toml, [profiles.<name>]",
  "plugin-dir": "hooks, skills and MCP servers belong to the cluster",
  "plugin-dir-no-mcp": "hooks, skills and MCP servers belong to the cluster",
  settings: "settings belong to parley.toml",
  "managed-settings": "settings belong to parley.toml",
  "managed-settings-in-initialize": "settings belong to parley.toml",
  "initialize-fields": "settings belong to parley.toml",
};

type Flags = ReadonlyMap<string, readonly string[]>;

/**
 * Throws UsageError for a flag that is unknown or cannot be honoured. `servers`: names of the MCP servers in the settings of the cluster;
 * undefined: an older gateway does not list them.
 */
export function sdkOptions(args: readonly string[], servers: readonly string[] | undefined): RunOptions {
  const { flags, operands } = readFlags(args);
  const text = (name: string): string | undefined => flags.get(name)?.at(-1);
  const output = choice<OutputFormat>("output-format", text("output-format") ?? "text", outputFormats);
  const streamInput = choice("input-format", text("input-format") ?? "text", ["text", "stream-json"]) === "stream-json";
  if (streamInput && output !== "stream-json")
    throw new UsageError("--input-format stream-json needs --output-format stream-json.");
  const prompts = text("permission-prompt-tool");
  if (prompts !== undefined && prompts !== "stdio")
    throw new UsageError("--permission-prompt-tool: only stdio is supported: the program that starts the run answers.");
  const asksNobody = choice("permission-prompts", text("permission-prompts") ?? "host", ["host", "none"]) === "none";
  const instructions = [text("system-prompt"), text("append-system-prompt")].filter((each) => each?.trim());
  const answerSchema = schemaOf(text("json-schema"));
  if (answerSchema !== null && output !== "stream-json")
    throw new UsageError("--json-schema needs --output-format stream-json.");
  if (answerSchema !== null) instructions.push(answerInstructions(answerSchema));
  const resume = text("resume");
  if (resume !== undefined && flags.has("continue"))
    throw new UsageError("Use either --resume or --continue, not both.");
  const profile = text("agent") ?? null;
  const continues = resume !== undefined || flags.has("continue");
  if (profile !== null && continues) throw new UsageError(profileOfSession);
  return {
    output,
    streamInput,
    maxModelCalls: readTurns(text("max-turns")),
    maxUsd: readDollars(text("max-budget-usd"), "--max-budget-usd"),
    partial: flags.has("include-partial-messages"),
    queueMode: undefined,
    setup: {
      permissionMode: permissionMode(flags),
      model: text("model") === "default" ? undefined : text("model"),
      fallbackModels: fallbackModels(text("fallback-model")),
      effort: effort(flags),
      allow: rules(flags, "allowedTools"),
      deny: denied(flags, servers),
    },
    profile,
    conversation: undefined,
    session: resume === undefined ? (flags.has("continue") ? "last" : null) : { resume },
    fork: flags.has("fork-session"),
    attach: [],
    instructions: instructions.length === 0 ? null : instructions.join("\n\n"),
    ...programServers(flags.get("mcp-config") ?? []),
    programApproves: streamInput && prompts === "stdio" && !asksNobody,
    hookEvents: flags.has("include-hook-events"),
    replay: flags.has("replay-user-messages"),
    answerSchema,
    prompt: streamInput ? null : (operands.at(-1) ?? null),
  };
}

function readFlags(args: readonly string[]): { flags: Flags; operands: string[] } {
  const flags = new Map<string, string[]>();
  const operands: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const [, given, attached] = /^--?([A-Za-z][A-Za-z0-9-]*)(?:=(.*))?$/s.exec(args[at] ?? "") ?? [];
    if (given === undefined) {
      operands.push(args[at] ?? "");
      continue;
    }
    const name = spellings[given] ?? given;
    const refusal = refusals[name];
    if (refusal !== undefined) throw new UsageError(`--${name} is not supported: ${refusal}.`);
    if (!flagNames.has(name) && !switches.has(name) && !valued.has(name)) {
      throw new UsageError(`--${name} is not a flag that parley sdk knows.`, "docs/sdk.md lists the flags.");
    }
    const needsValue = !withoutValue.has(name) && attached === undefined;
    if (needsValue && args[at + 1] === undefined) throw new UsageError(`--${name} needs a value.`);
    const value = attached ?? (needsValue ? (args[++at] ?? "") : "");
    flags.set(name, [...(flags.get(name) ?? []), value]);
  }
  return { flags, operands };
}

function choice<T extends string>(name: string, value: string, known: readonly T[]): T {
  const found = known.find((each) => each === value);
  if (found !== undefined) return found;
  throw new UsageError(`--${name}: "${value}" is not one of ${known.join(", ")}.`);
}

/** Names separated by commas. */
function fallbackModels(text: string | undefined): string[] | undefined {
  const names = text?.split(",").map((name) => name.trim()) ?? [];
  return names.length === 0 ? undefined : names.filter((name) => name !== "");
}

/** Throws UsageError. */
function schemaOf(text: string | undefined): AnswerSchema | null {
  if (text === undefined) return null;
  try {
    return readAnswerSchema(parseJson(text));
  } catch (error) {
    throw new UsageError(`--json-schema: ${errorMessage(error)}.`);
  }
}

function readTurns(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new UsageError(`--max-turns: "${text}" is not a number of 1 or more.`);
}

function permissionMode(flags: Flags) {
  if (flags.has("dangerously-skip-permissions")) return "bypass";
  const name = flags.get("permission-mode")?.at(-1);
  if (name === undefined) return undefined;
  const mode = readPermissionMode(name);
  if (mode === undefined) throw new UsageError(`--permission-mode: "${name}" is not a permission mode of Parley.`);
  return mode;
}

function effort(flags: Flags) {
  const thinking = flags.get("thinking")?.at(-1);
  if (thinking !== undefined && thinking !== "adaptive")
    throw new UsageError(`--thinking ${thinking} is not supported: set [agent] thinking in parley.toml.`);
  const name = flags.get("effort")?.at(-1);
  return name === undefined ? undefined : choice("effort", name, efforts);
}

/** Rules separated by commas or spaces outside of parentheses. */
function splitRules(text: string): string[] {
  return text.match(/[^\s,()]+(?:\([^)]*\))?/g) ?? [];
}

/** The permission rules of a flag, with Parley's names; undefined without the flag. */
function rules(flags: Flags, name: string): string[] | undefined {
  const given = flags.get(name);
  return given?.flatMap(splitRules).map((rule) => readRule(rule, name));
}

function readRule(text: string, flag: string): string {
  // `mcp__server` means all tools of the server, and `:*` at the end any further arguments.
  const rule = /^mcp__[^_]+(?:_[^_]+)*$/.test(text) ? `${text}__*` : text.replace(/:\*\)$/, "*)");
  const parsed = parsePermissionRule(rule);
  if ("problem" in parsed) throw new UsageError(`--${flag}: \`${text}\` ${parsed.problem}.`);
  const { tool, pattern } = parsed.rule;
  if (!tool.startsWith("mcp__") && !/[*?]/.test(tool) && !builtInToolNames.includes(tool))
    throw new UsageError(
      `--${flag}: there is no tool "${tool}".`,
      "docs/tools.md lists the tools and their other names.",
    );
  const own = ownToolName(tool);
  // An allow rule of a session covers exact commands: the options that a wildcard covers can start other programs.
  if (flag === "allowedTools" && own === "exec" && pattern !== null && /[*?]/.test(pattern))
    throw new UsageError(
      `--${flag}: \`${text}\` allows commands by a wildcard: set [permissions] allow in parley.toml.`,
    );
  return pattern === null ? own : `${own}(${pattern})`;
}

/** Deny rules: of --disallowedTools, for built-in tools that --tools does not list, and for MCP servers of the cluster. */
function denied(flags: Flags, servers: readonly string[] | undefined): string[] | undefined {
  const named = rules(flags, "disallowedTools") ?? [];
  const only = flags.get("tools")?.at(-1);
  const others = only === undefined || only === "default" ? [] : unlisted(only);
  const ofServers = flags.has("strict-mcp-config") ? serverRules(servers) : [];
  const all = [...named, ...others, ...ofServers];
  return all.length === 0 ? undefined : all;
}

/** Rules for all tools of the cluster's MCP servers, whether they are connected now or not. The program's own servers have other names. */
function serverRules(servers: readonly string[] | undefined): string[] {
  if (servers === undefined)
    throw new UsageError("--strict-mcp-config is not supported by this gateway.", "Update the cluster.");
  return servers.map((server) => `mcp__${server}__*`);
}

/** The built-in tools that a list does not name, whether the cluster reports them now or not. */
function unlisted(list: string): string[] {
  const kept = new Set(splitRules(list).map((name) => readRule(name, "tools")));
  return [...new Set(builtInToolNames.map(ownToolName))].filter((tool) => !kept.has(tool));
}
