// Which tools a model is shown in full, and how the others are named to it; pure.
import type { Message, ParleySettings, ToolDescriptor } from "@parley/contracts";
import { compileText } from "../permissions/glob.ts";
import { searchToolName } from "../tools/tool-search.ts";

export type SearchSettings = Pick<ParleySettings["tools"], "search_above" | "always" | "disabled">;

/** The tools that need not be shown in full; none where there are few. */
export function deferrable(tools: readonly ToolDescriptor[], settings: SearchSettings): ToolDescriptor[] {
  const { search_above: above, disabled } = settings;
  if (above === 0 || tools.length <= above || disabled.includes(searchToolName)) return [];
  const always = settings.always.map(compileText);
  return tools.filter(({ name }) => !always.some((matches) => matches(name)));
}

/** Names that the messages' calls go by: whoever used a tool lately goes on using it. */
export function calledNames(messages: readonly Message[]): Set<string> {
  const names = new Set<string>();
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    for (const part of message.parts) if (part.type === "tool_call") names.add(part.name);
  }
  return names;
}

/** A server with more tools than this is not told tool by tool what they do: their names say enough to search for. */
const maxToldOfServer = 20;
/** Characters of one line on a tool; servers write what they like. */
const maxSummaryChars = 120;

/** The tools by name, a line each, sorted; those of a server together. */
export function listDeferred(tools: readonly ToolDescriptor[]): string {
  const servers = Map.groupBy(tools, ({ name }) => /^mcp__(.+?)__/.exec(name)?.[1] ?? "");
  const own = (servers.get("") ?? []).map(toldLine);
  const theirs = [...servers].flatMap(([server, those]) => {
    if (server === "") return [];
    const told = those.length <= maxToldOfServer;
    return [`Of the server ${server}:`, ...(told ? those.map(toldLine) : [those.map(({ name }) => name).join(", ")])];
  });
  return [...own, ...theirs].join("\n");
}

function toldLine({ name, summary }: ToolDescriptor): string {
  const line = summary.replaceAll(/\s+/g, " ").trim();
  const short = line.length > maxSummaryChars ? `${line.slice(0, maxSummaryChars)}…` : line;
  return short === "" ? `- ${name}` : `- ${name}: ${short}`;
}
