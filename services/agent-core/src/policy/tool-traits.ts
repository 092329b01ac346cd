// Default traits of tools by name: risk, effects, and the main argument that rules match. Risk and effects in a tool's own
// descriptor take precedence.
import type { ToolDescriptor, ToolEffect, ToolRisk } from "@parley/contracts";

/** The tool properties that permission decisions need. */
export interface PermissionTool extends Pick<ToolDescriptor, "name" | "readOnly"> {
  /** Other names that rules may use. */
  aliases?: readonly string[];
  /** Default: by name, else high. */
  risk?: ToolRisk;
  /** Default: by name, else all effects that require approval. */
  effects?: readonly ToolEffect[];
  /** Whether it runs programs in a sandbox (bubblewrap, or a dedicated container). Default: false. */
  contained?: boolean;
  /** Default: by name, else none. */
  argument?: MainArgument;
}

/** The argument that a rule's pattern matches, and its format. */
export type MainArgument = { kind: "command" | "path" | "patch" | "url" | "text"; field: string } | { kind: "none" };

interface ToolFacts {
  risk: ToolRisk;
  effects: readonly ToolEffect[];
  argument: MainArgument;
}

const none: MainArgument = { kind: "none" };
const command: MainArgument = { kind: "command", field: "command" };
const path: MainArgument = { kind: "path", field: "path" };
const text = (field: string): MainArgument => ({ kind: "text", field });
const facts = (risk: ToolRisk, effects: readonly ToolEffect[], argument: MainArgument): ToolFacts => ({
  risk,
  effects,
  argument,
});

const known: Readonly<Record<string, ToolFacts>> = {
  exec: facts("high", ["executes", "reads_files", "writes_files"], command),
  process: facts("high", ["executes"], text("action")),
  read: facts("none", ["reads_files"], path),
  ls: facts("none", ["reads_files"], path),
  glob: facts("none", ["reads_files"], text("pattern")),
  grep: facts("none", ["reads_files"], text("pattern")),
  write: facts("medium", ["writes_files"], path),
  edit: facts("medium", ["reads_files", "writes_files"], path),
  apply_patch: facts("medium", ["reads_files", "writes_files"], { kind: "patch", field: "patch" }),
  notebook_edit: facts("medium", ["reads_files", "writes_files"], path),
  web_search: facts("low", ["reads_untrusted"], text("query")),
  web_fetch: facts("low", ["reads_untrusted"], { kind: "url", field: "url" }),
  attach: facts("low", ["reads_files"], path),
  save_attachment: facts("medium", ["writes_files", "reads_untrusted"], path),
  message: facts("high", ["sends_out"], text("to")),
  speak: facts("high", ["sends_out"], text("to")),
  ask_user: facts("none", [], none),
  sleep: facts("none", [], none),
  skill: facts("none", [], text("name")),
  exit_plan_mode: facts("none", [], text("plan")),
  todo: facts("none", [], none),
  cron: facts("low", ["schedules"], text("action")),
  memory_search: facts("none", [], text("query")),
  memory_get: facts("none", [], path),
  memory_write: facts("low", ["writes_memory"], path),
  memory_forget: facts("low", ["writes_memory"], path),
  mcp_read: facts("low", ["reads_untrusted", "sends_out"], text("server")),
  mcp_authorize: facts("low", [], text("server")),
  sessions_list: facts("none", [], none),
  sessions_history: facts("none", [], text("session_id")),
  sessions_status: facts("none", [], none),
  agents_list: facts("none", [], none),
  subagents: facts("none", [], text("action")),
  sessions_send: facts("medium", [], text("session_id")),
  sessions_spawn: facts("low", [], text("profile")),
};

/** Tools that send to the current conversation or to one named in their arguments. */
const speaking: ReadonlySet<string> = new Set(["message", "speak"]);
const unknownEffects: readonly ToolEffect[] = ["reads_untrusted", "sends_out", "executes"];
const spawnNames: ReadonlySet<string> = new Set(["sessions_spawn", "delegate", "spawn", "Agent"]);

/** Whether it is the tool that starts sub-agents, under any of its names. */
export function startsSubagents(tool: PermissionTool): boolean {
  return spawnNames.has(tool.name);
}

/** Whether it sends messages to people; the recipient determines its risk. */
export function messagesPeople(tool: PermissionTool): boolean {
  return speaking.has(tool.name);
}

/** Whether the tool sends messages to people or asks them. */
export function talksToPeople(tool: PermissionTool): boolean {
  return messagesPeople(tool) || tool.name === "ask_user";
}

/** Risk and effects of the tool, before arguments, sandbox and role are considered. */
export function traitsOf(tool: PermissionTool): { risk: ToolRisk; effects: readonly ToolEffect[] } {
  const byName = lookUp(tool);
  return {
    risk: tool.risk ?? byName?.risk ?? "high",
    effects: tool.effects ?? byName?.effects ?? unknownEffects,
  };
}

/** Finds the tools of a turn by any of their names. */
export interface ToolSource {
  find(name: string): { descriptor: ToolDescriptor } | undefined;
}

export type FileAccess = "read" | "write";

/** How a tool accesses the workspace files in its arguments; empty for tools that run programs and for MCP tools. */
export function fileAccessOf(tool: PermissionTool): readonly FileAccess[] {
  const { effects } = traitsOf(tool);
  if (tool.name.startsWith("mcp__") || effects.includes("executes")) return [];
  return [
    ...(effects.includes("reads_files") ? (["read"] as const) : []),
    ...(effects.includes("writes_files") ? (["write"] as const) : []),
  ];
}

/** MCP tools have none: only the server knows what their arguments mean. */
export function mainArgument(tool: PermissionTool): MainArgument {
  if (tool.name.startsWith("mcp__")) return none;
  return tool.argument ?? lookUp(tool)?.argument ?? none;
}

function lookUp(tool: PermissionTool): ToolFacts | undefined {
  const name = startsSubagents(tool) ? "sessions_spawn" : tool.name;
  return Object.hasOwn(known, name) ? known[name] : undefined;
}
