// All slash commands, in the order of /help. Operations define their forms.
import { efforts } from "../settings/agent.ts";
import { permissionModes } from "../settings/permissions.ts";
import type { SlashCommand } from "./operation.ts";

export const slashCommands: readonly SlashCommand[] = [
  { name: "/help", usage: "/help [command]", summary: "list the commands, or show the usage of one" },
  { name: "/start", usage: "/start", summary: "show how to begin" },
  { name: "/status", usage: "/status", summary: "show the state of this conversation" },
  { name: "/whoami", usage: "/whoami", summary: "show your identity, role and session" },
  {
    name: "/stop",
    usage: "/stop [all]",
    summary: "stop the running turn and cancel queued messages; all: also sub-agents and background processes",
    keepsWindow: true,
  },
  { name: "/more", usage: "/more", summary: "send the rest of the last long answer, on channels that shorten answers" },
  { name: "/new", usage: "/new [title]", summary: "start a new session; the previous one is kept" },
  { name: "/reset", usage: "/reset [title]", summary: "the same as /new" },
  {
    name: "/session",
    usage: "/session [show | list [n] | new [title] | name <title> | resume <n|id|title> | fork [title]]",
    summary: "show, list, start, name, resume or fork sessions",
  },
  {
    name: "/queue",
    usage: "/queue [list | cancel <n|id> | edit <n|id> <text> | mode <mode>]",
    summary: "list, cancel or edit queued messages, or change how new ones queue",
    keepsWindow: true,
  },
  {
    name: "/steer",
    usage: "/steer <text>",
    summary: "send a message that joins the running turn",
    keepsWindow: true,
  },
  {
    name: "/later",
    usage: "/later <text>",
    summary: "send a message that is answered after the running turn",
    keepsWindow: true,
  },
  {
    name: "/now",
    usage: "/now <text>",
    summary: "stop the running turn and send this message instead",
    keepsWindow: true,
  },
  {
    name: "/approve",
    usage: "/approve <id> [always]",
    summary: "approve a pending tool call; always: also allow similar calls in this session",
  },
  { name: "/deny", usage: "/deny <id> [reason]", summary: "deny a pending tool call" },
  {
    name: "/approvals",
    usage: "/approvals [id]",
    summary: "list pending tool calls; with an id: show one call in full",
  },
  {
    name: "/channels",
    usage: "/channels [move <channel> <account> [<gateway>]]",
    summary: "list the accounts of channels, or hand one over to a gateway",
  },
  { name: "/people", usage: "/people", summary: "list the people who may write to the agent, or asked to" },
  {
    name: "/pair",
    usage: "/pair <code> [owner|user|guest]",
    summary: "admit the person who received this code; default: user",
  },
  {
    name: "/link",
    usage: "/link <code>",
    summary: "continue this conversation in the chat that received the code",
  },
  {
    name: "/model",
    usage: "/model [name|default]",
    summary: "show this session's model, or change it from the next model call on",
  },
  {
    name: "/effort",
    usage: `/effort [${efforts.join("|")}|default]`,
    summary: "show or set the reasoning effort in this session",
  },
  {
    name: "/mode",
    usage: `/mode [${permissionModes.join("|")}]`,
    summary: "show or set what the agent may do without approval in this session",
  },
  {
    name: "/workspace",
    usage: "/workspace [name|default]",
    summary: "show the folder that this session works in, or choose one before its first message",
  },
  {
    name: "/rules",
    usage: "/rules [list | add <list> <rule> | remove <rule>]",
    summary: "list, add or remove this session's permission rules; <list>: allow, ask or deny",
  },
  {
    name: "/compact",
    usage: "/compact [what to keep]",
    summary: "compact the conversation for the model: a summary replaces older messages",
  },
  { name: "/cost", usage: "/cost [session | today | days <n>]", summary: "show the cost of model calls" },
  { name: "/todo", usage: "/todo", summary: "show the agent's todo list for this session", keepsWindow: true },
  {
    name: "/checkpoint",
    usage: "/checkpoint [list | rewind <n|id> [--dry-run]]",
    summary: "list checkpoints of files that turns changed, or restore one",
  },
  { name: "/rewind", usage: "/rewind <n|id> [--dry-run]", summary: "restore files to their state before a turn" },
  {
    name: "/mcp",
    usage: "/mcp [tools <server> | prompts [server] | on|off <server> [tool] | restart <server>]",
    summary: "show MCP servers, their tools and prompts; switch a server, or hide one of its tools",
  },
  { name: "/skills", usage: "/skills", summary: "list the skills, and why others are not loaded" },
  {
    name: "/voice",
    usage:
      "/voice [start [microphone|loopback|<device>] | stop | status | events [n] | devices | replies on|off|status]",
    summary: "speak to this conversation by microphone, and get spoken answers",
    keepsWindow: true,
  },
];

/** The name of all commands that send a prompt of an MCP server; /help does not list them. */
export const promptCommand = "/mcp__<server>__<prompt>";
