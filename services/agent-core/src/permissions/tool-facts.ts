// What is known of a tool by its name: its risk, its effects, and the argument that rules are held against. What a tool's own
// descriptor says of risk and effects wins; this is for tools that say nothing.
import type { ToolDescriptor, ToolEffect, ToolRisk } from "@parley/contracts";

/** What the permission engine needs to know of a tool. */
export interface PermissionTool extends Pick<ToolDescriptor, "name" | "readOnly"> {
  /** Other names a rule may call it by. */
  aliases?: readonly string[];
  /** Left out: known by the name, else high. */
  risk?: ToolRisk;
  /** Left out: known by the name, else every effect that counts. */
  effects?: readonly ToolEffect[];
  /** What it executes runs behind a wall (bubblewrap, or a container that is there for this). Left out: it does not. */
  contained?: boolean;
  /** Left out: known by the name, else none. */
  argument?: MainArgument;
}

/** Which argument a rule's pattern is held against, and how it is read. */
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

/** Tools that send to a conversation: the one at work, or another one that their arguments name. */
const speaking: ReadonlySet<string> = new Set(["message", "speak"]);
const unknownEffects: readonly ToolEffect[] = ["reads_untrusted", "sends_out", "executes"];
const spawnNames: ReadonlySet<string> = new Set(["sessions_spawn", "delegate", "spawn", "Agent"]);

/** The one tool that starts sub-agents, under whichever of its names. */
export function startsSubagents(tool: PermissionTool): boolean {
  return spawnNames.has(tool.name);
}

/** It writes or speaks to people; to whom decides how much harm it can do. */
export function saysToPeople(tool: PermissionTool): boolean {
  return speaking.has(tool.name);
}

/** Risk and effects before the call's arguments, the walls and the speaker are looked at. */
export function factsOf(tool: PermissionTool): { risk: ToolRisk; effects: readonly ToolEffect[] } {
  const byName = lookUp(tool);
  return {
    risk: tool.risk ?? byName?.risk ?? "high",
    effects: tool.effects ?? byName?.effects ?? unknownEffects,
  };
}

export type FileAccess = "read" | "write";

/** What a tool does to the files of the workspace that its arguments name; none for tools that run programs, and of others. */
export function fileAccessOf(tool: PermissionTool): readonly FileAccess[] {
  const { effects } = factsOf(tool);
  if (tool.name.startsWith("mcp__") || effects.includes("executes")) return [];
  return [
    ...(effects.includes("reads_files") ? (["read"] as const) : []),
    ...(effects.includes("writes_files") ? (["write"] as const) : []),
  ];
}

/** Tools of MCP servers have none: what their arguments mean is the server's affair. */
export function mainArgument(tool: PermissionTool): MainArgument {
  if (tool.name.startsWith("mcp__")) return none;
  return tool.argument ?? lookUp(tool)?.argument ?? none;
}

function lookUp(tool: PermissionTool): ToolFacts | undefined {
  const name = startsSubagents(tool) ? "sessions_spawn" : tool.name;
  return Object.hasOwn(known, name) ? known[name] : undefined;
}
