// Which tools are in the prompt with their full definition, and how the others are listed; pure.
import type { ParleySettings, ToolDescriptor } from "@parley/contracts";
import { compileText } from "../policy/pattern.ts";
import { searchToolName } from "./tool-search.ts";

export type SearchSettings = Pick<ParleySettings["tools"], "search_above" | "always" | "disabled">;

/** The tools that need no full definition in the prompt; empty when there are few tools. */
export function isDeferrable(tools: readonly ToolDescriptor[], settings: SearchSettings): ToolDescriptor[] {
  const { search_above: above, disabled } = settings;
  if (above === 0 || tools.length <= above || disabled.includes(searchToolName)) return [];
  const always = settings.always.map(compileText);
  return tools.filter(({ name }) => !always.some((matches) => matches(name)));
}

/** For a server with more tools than this, only the names are listed: they suffice to search for. */
const maxToldOfServer = 20;
/** Longest summary line of a tool, in characters: MCP servers are free in what they write. */
const maxSummaryChars = 120;

/** The tools, one line each, sorted by name and grouped by MCP server. */
export function listDeferred(tools: readonly ToolDescriptor[]): string {
  const servers = Map.groupBy(tools, ({ name }) => /^mcp__(.+?)__/.exec(name)?.[1] ?? "");
  const own = (servers.get("") ?? []).map(summaryLine);
  const theirs = [...servers].flatMap(([server, those]) => {
    if (server === "") return [];
    const isListed = those.length <= maxToldOfServer;
    return [
      `Tools of the server ${server}:`,
      ...(isListed ? those.map(summaryLine) : [those.map(({ name }) => name).join(", ")]),
    ];
  });
  return [...own, ...theirs].join("\n");
}

function summaryLine({ name, summary }: ToolDescriptor): string {
  const line = summary.replaceAll(/\s+/g, " ").trim().replace(/\.$/, "");
  const short = line.length > maxSummaryChars ? `${line.slice(0, maxSummaryChars)}…` : line;
  return short === "" ? `- ${name}` : `- ${name}: ${short}`;
}
