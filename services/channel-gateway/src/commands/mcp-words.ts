// What is said of MCP servers, their tools and their prompts. Pure.
import type { McpPrompt, McpServerStatus } from "@parley/contracts";
import type { McpOrder, McpOutcome, McpServerView, McpTools } from "../mcp-acts.ts";

const noServers =
  "There are no MCP servers. Add one to parley.toml ([mcp.servers.<name>], see docs/mcp.md) and start Parley again.";

export function serversText(servers: readonly McpServerView[]): string {
  if (servers.length === 0) return noServers;
  return [
    ...servers.map(viewLine),
    "/mcp tools <server> lists a server's tools, /mcp prompts their prompts. /mcp on, off and restart <server> switch one.",
  ].join("\n");
}

export function toolsText(server: McpServerView, tools: McpTools): string {
  return [viewLine(server), ...tools.map(({ tool, hidden }) => `- ${tool}${hidden ? " (hidden)" : ""}`)].join("\n");
}

/** Where there are none, how the servers are that might have some. */
export function promptsText(prompts: readonly McpPrompt[], servers: readonly McpServerStatus[]): string {
  if (servers.length === 0) return noServers;
  if (prompts.length > 0) return prompts.map(promptLine).join("\n");
  const away = servers.filter(({ state }) => state !== "ready").map((server) => statusLine(server));
  return ["There are no prompts.", ...away].join("\n");
}

export function switchedText(to: McpOrder["to"], { server, tool, outcome, switch: now }: McpOutcome): string {
  const same = outcome === "same";
  if (tool !== null) {
    const which = `${tool} of ${server}`;
    if (to === "off") return same ? `${which} is hidden already.` : hiddenText(which, `/mcp on ${server} ${tool}`);
    const off = now.on ? "" : ` ${server} itself is off: /mcp on ${server}.`;
    return `${same ? `${which} is not hidden.` : `The agent has ${which} again, in conversations from their next beginning (/new) on.`}${off}`;
  }
  switch (to) {
    case "on":
      return same
        ? `${server} is on already. /mcp shows how it is; /mcp restart ${server} starts it again.`
        : `${server} is on, and is being started. /mcp shows how it is.`;
    case "off":
      return same
        ? `${server} is off already.`
        : `${server} is off everywhere, until /mcp on ${server}. A conversation that knows its tools learns it when it calls one.`;
    default:
      return `${server} is being started again, on every tool-runner. /mcp shows how it is.`;
  }
}

function hiddenText(which: string, undo: string): string {
  return `The agent does not have ${which} any more, until ${undo}. A conversation that knows the tool learns it when it calls it.`;
}

function viewLine(view: McpServerView): string {
  const { server, switched } = view;
  if (switched?.on === false) return `${server}: off, switched off by ${switched.by}`;
  const hidden = switched === null || switched.hidden.length === 0 ? "" : `, ${switched.hidden.length} hidden`;
  return statusLine(view, hidden);
}

function statusLine({ server, state, tools, problem }: McpServerStatus, more = ""): string {
  return `${server}: ${state}, ${tools} tools${more}${problem === null ? "" : ` (${problem})`}`;
}

function promptLine({ server, prompt, about, arguments: wanted }: McpPrompt): string {
  const names = wanted.map(({ name, required }) => (required ? ` <${name}>` : ` [${name}]`)).join("");
  const typed = `/mcp__${server}__${prompt}`.toLowerCase().replaceAll(/[^a-z0-9_/-]/g, "_");
  return `${typed}${names}${about === "" ? "" : `: ${about}`}`;
}
