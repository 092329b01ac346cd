// Texts about MCP servers, their tools and their prompts. Pure.
import type { McpPrompt, McpServerStatus } from "@parley/contracts";
import type { McpOverrideResult, McpServerView, McpSwitchRequest, McpView } from "./mcp.ts";

const noServers =
  "No MCP servers are configured. Add one to parley.toml ([mcp.servers.<name>], see docs/mcp.md) and restart Parley.";

export function serversText(servers: readonly McpServerView[]): string {
  if (servers.length === 0) return noServers;
  return [
    ...servers.map(viewLine),
    "/mcp tools <server> lists a server's tools, /mcp prompts lists all prompts. /mcp on|off|restart <server> controls a server.",
  ].join("\n");
}

export function toolsText(server: McpServerView, tools: McpView["tools"]): string {
  return [viewLine(server), ...tools.map(({ tool, hidden }) => `- ${tool}${hidden ? " (hidden)" : ""}`)].join("\n");
}

/** When there are no prompts, the text lists the servers that are not ready, because they may have some. */
export function promptsText(prompts: readonly McpPrompt[], servers: readonly McpServerStatus[]): string {
  if (servers.length === 0) return noServers;
  if (prompts.length > 0) return prompts.map(promptLine).join("\n");
  const away = servers.filter(({ state }) => state !== "ready").map((server) => statusLine(server));
  return ["No prompts found.", ...away].join("\n");
}

export function switchedText(
  to: McpSwitchRequest["action"],
  { server, tool, outcome, switch: now }: McpOverrideResult,
): string {
  const same = outcome === "same";
  if (tool !== null) {
    const which = `${tool} of ${server}`;
    if (to === "off") return same ? `${which} is already hidden.` : hiddenText(which, `/mcp on ${server} ${tool}`);
    const off = now.on ? "" : ` The server ${server} is off: /mcp on ${server}.`;
    return `${same ? `${which} is not hidden.` : `${which} is visible again. A conversation gets it with its next session (/new).`}${off}`;
  }
  switch (to) {
    case "on":
      return same
        ? `${server} is already on. /mcp shows its state; /mcp restart ${server} restarts it.`
        : `${server} is on and is starting. /mcp shows its state.`;
    case "off":
      return same
        ? `${server} is already off.`
        : `${server} is off everywhere until /mcp on ${server}. Running conversations get an error when they call one of its tools.`;
    default:
      return `${server} is restarting on every tool-runner. /mcp shows its state.`;
  }
}

function hiddenText(which: string, undo: string): string {
  return `${which} is hidden from the agent until ${undo}. Running conversations get an error when they call it.`;
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
