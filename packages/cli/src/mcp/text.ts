// Formats MCP servers for people. Pure.

import type { Paint } from "../io.ts";
import { localTime } from "../sessions/text.ts";
import { oneLine, table } from "../text.ts";
import type { Order, ServerRow, Switched, ToolRow } from "./answers.ts";

export function serversTable(servers: readonly ServerRow[], paint: Paint): string {
  if (servers.length === 0) return "There are no MCP servers. Add one in parley.toml: [mcp.servers.<name>]";
  const head = ["SERVER", "STATE", "TOOLS", "HIDDEN", "WHAT"].map((name) => paint("dim", name));
  return table([head, ...servers.map(row)]);
}

function row({ server, state, tools, problem, switched }: ServerRow): string[] {
  const off = switched?.on === false ? `off by ${switched.by} since ${localTime(switched.at)}` : "";
  return [server, state, String(tools), String(switched?.hidden.length ?? 0), oneLine(problem ?? off, 100)];
}

export function toolsTable({ server, state }: ServerRow, tools: readonly ToolRow[], paint: Paint): string {
  if (tools.length === 0) return `${server} has no tools now: it is ${state}.`;
  const head = ["TOOL", "NAME FOR THE AGENT", ""].map((name) => paint("dim", name));
  return table([head, ...tools.map(({ tool, name, hidden }) => [tool, name, hidden ? "hidden" : ""])]);
}

export function switchedText(order: Order, { server, tool, outcome }: Switched): string {
  if (tool !== null) {
    if (outcome === "same") return `${tool} of ${server} is ${order === "off" ? "already hidden" : "not hidden"}.`;
    return `${tool} of ${server} is ${order === "off" ? "hidden" : "shown again"}.`;
  }
  if (order === "restart") return `${server} is restarting.`;
  return `${server} is ${outcome === "same" ? "already " : ""}${order}.`;
}
