// The names and aliases of the tools of both services, and matching of a `*` pattern against a name. Settings that name tools are checked
// against this list where no service runs; test/tools-document.test.ts compares it with the real catalogs.
import type { HookSettings } from "./settings/hooks.ts";

/** Tools, each by its own name and its aliases. Tools of MCP servers are missing: they are named `mcp__<server>__<tool>`. */
const tools: readonly (readonly [string, ...string[]])[] = [
  ["apply_patch"],
  ["attach"],
  ["edit", "edit_file", "Edit"],
  ["glob", "Glob"],
  ["grep", "Grep"],
  ["ls", "list_dir", "LS"],
  ["notebook_edit", "NotebookEdit"],
  ["read", "read_file", "Read"],
  ["save_attachment"],
  ["write", "write_file", "Write"],
  ["exec", "shell", "bash", "Bash"],
  ["process", "TaskOutput", "TaskStop", "BashOutput", "KillShell"],
  ["web_fetch", "WebFetch"],
  ["web_search", "WebSearch"],
  ["mcp_resources", "ListMcpResources"],
  ["mcp_read", "ReadMcpResource"],
  ["mcp_authorize"],
  ["message", "send_message"],
  ["ask_user", "AskUserQuestion"],
  ["cron"],
  ["sleep"],
  ["exit_plan_mode", "ExitPlanMode"],
  ["skill", "Skill"],
  ["todo", "TodoWrite", "todo_write"],
  ["speak", "text_to_speech"],
  ["sessions_list"],
  ["sessions_history"],
  ["sessions_status", "session_status"],
  ["sessions_send"],
  ["subagents"],
  ["agents_list"],
  ["sessions_spawn", "delegate", "spawn", "Agent"],
  ["memory_search", "memory_recall"],
  ["memory_get"],
  ["memory_write", "memory_store"],
  ["memory_forget"],
  ["tool_search", "ToolSearch"],
  ["tool_call"],
];

/** Own names and aliases of the built-in tools. */
export const builtInToolNames: readonly string[] = tools.flat();

const ownNames: ReadonlyMap<string, string> = new Map(tools.flatMap((names) => names.map((name) => [name, names[0]])));

/** The own name of a built-in tool for its own name or an alias; any other name unchanged. */
export function ownToolName(name: string): string {
  return ownNames.get(name) ?? name;
}

/** The own name and the aliases of a built-in tool; for any other name, that name alone. */
export function toolNamesOf(name: string): readonly string[] {
  return tools.find((names) => names.includes(name)) ?? [name];
}

const toolEvents: ReadonlySet<string> = new Set([
  "PreToolUse",
  "PostToolUse",
  "PostToolUseFailure",
  "PermissionRequest",
]);

/** The alternatives of a hook's matcher; none: it matches every name. */
export function matcherPatterns(matcher: string | undefined): string[] {
  const text = (matcher ?? "").trim();
  return text === "" ? [] : text.split("|").map((pattern) => pattern.trim());
}

/**
 * Whether the pattern, in which `*` matches any text, matches the whole name. Linear in the lengths of both: each part is searched
 * after the previous one, without backtracking.
 */
export function matchesNamePattern(pattern: string, name: string): boolean {
  const [first = "", ...others] = pattern.split("*");
  const last = others.pop();
  if (last === undefined) return pattern === name;
  if (!name.startsWith(first)) return false;
  let position = first.length;
  for (const part of others) {
    const found = name.indexOf(part, position);
    if (found < 0) return false;
    position = found + part.length;
  }
  return name.length - last.length >= position && name.endsWith(last);
}

/**
 * One sentence per pattern of a tool hook's matcher that matches no tool: such a hook never runs. Patterns that can match a tool of
 * an MCP server are not reported, because those tools are known only while the server runs.
 */
export function unmatchedHooks(hooks: readonly Pick<HookSettings, "name" | "event" | "matcher">[]): string[] {
  return hooks.flatMap((hook, index) => {
    if (!toolEvents.has(hook.event)) return [];
    return matcherPatterns(hook.matcher)
      .filter((pattern) => !canMatchMcp(pattern) && !builtInToolNames.some((name) => matchesNamePattern(pattern, name)))
      .map(
        (pattern) =>
          `hooks[${index}] (${hook.name ?? hook.event}): the matcher "${pattern}" matches no tool, so this hook never runs for it; docs/tools.md lists the names`,
      );
  });
}

const mcpPrefix = "mcp__";

export function isMcpToolName(name: string): boolean {
  return name.startsWith(mcpPrefix);
}

function canMatchMcp(pattern: string): boolean {
  const [start = ""] = pattern.split("*");
  return start.startsWith(mcpPrefix) || (start.length < pattern.length && mcpPrefix.startsWith(start));
}
