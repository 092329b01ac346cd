// Operations on MCP servers at run time, shared by the /mcp command and the HTTP API. Only the settings decide which servers exist.
import type { Bus } from "@parley/bus";
import {
  mcpLook,
  nearestName,
  store,
  WireError,
  type McpChange,
  type McpServerStatus,
  type McpSwitch,
  type OutputOf,
  type ParleySettings,
} from "@parley/contracts";
import { answerOf } from "./session-service.ts";

/** A tool-runner answers from memory. */
const lookMs = 3_000;

interface McpDeps {
  bus: Bus;
  settings: Pick<ParleySettings, "mcp">;
}

/** The state of a server in a tool-runner, and its run-time switches. */
export interface McpServerView extends McpServerStatus {
  /** Null: never switched. */
  switched: McpSwitch | null;
}

export type McpTools = OutputOf<typeof mcpLook>["tools"];

export interface McpSwitchRequest {
  to: "on" | "off" | "restart";
  server: string;
  /** The tool's name at the server or in the catalog; undefined: the whole server. */
  tool?: string | undefined;
}

/** The result of an order; names are spelled as in the settings and on the server. */
export interface McpOutcome {
  server: string;
  tool: string | null;
  /** `same`: nothing changed. */
  outcome: "done" | "same";
  switch: McpSwitch;
}

/** Returns the known state of all servers, sorted by name, without waiting for them. Throws ServiceUnavailableError when no tool-runner responds. */
export async function listServers({ bus }: McpDeps): Promise<McpServerView[]> {
  const [{ servers }, switches] = await Promise.all([ask(bus, {}), switchesOf(bus)]);
  return servers.map((status) => viewOf(status, switches));
}

/** Returns one server and its tools. Throws NOT_FOUND, or ServiceUnavailableError when no tool-runner responds. */
export async function getServer(
  { bus, settings }: McpDeps,
  named: string,
): Promise<{ server: McpServerView; tools: McpTools }> {
  const server = serverNamed(settings, named);
  const [{ servers, tools }, switches] = await Promise.all([ask(bus, { server }), switchesOf(bus)]);
  const status = servers.find((each) => each.server === server);
  if (status === undefined) throw new WireError("NOT_FOUND", `no tool-runner has loaded ${server} yet; restart Parley`);
  return { server: viewOf(status, switches), tools };
}

/**
 * Switches a server, or one of its tools; a repeated `opId` has one effect. Throws NOT_FOUND for an unknown server or tool, CONFLICT for
 * a server that is off in the settings, and for a restart of a server that is off.
 */
export async function switchServer(
  deps: McpDeps,
  { to, server: named, tool: namedTool }: McpSwitchRequest,
  { by, opId }: { by: string; opId: string },
): Promise<McpOutcome> {
  const server = serverNamed(deps.settings, named);
  const tool = namedTool === undefined ? null : await toolNamed(deps.bus, server, namedTool, to);
  const change: McpChange = tool === null ? { do: to } : { do: to === "on" ? "show" : "hide", tool };
  const answer = await deps.bus.request(store.mcpSwitch, { opId, server, change, by: by.slice(0, 300) });
  const { outcome } = answer;
  if (outcome === "off") throw new WireError("CONFLICT", `${server} is switched off; switch it on to start it`);
  return { server, tool, outcome, switch: answer.switch };
}

/** Finds a configured server by name; an exact match takes precedence over a case-insensitive one. */
function serverNamed({ mcp }: McpDeps["settings"], named: string): string {
  const names = Object.keys(mcp.servers);
  const server = names.find((name) => name === named) ?? names.find((name) => sameWord(name, named));
  if (server === undefined) throw new WireError("NOT_FOUND", noServerText(named, names));
  if (mcp.servers[server]?.enabled === false) {
    throw new WireError("CONFLICT", `${server} is disabled in parley.toml (enabled = false); enable it there`);
  }
  return server;
}

function noServerText(named: string, names: readonly string[]): string {
  if (names.length === 0) return "no MCP servers are configured; add one to parley.toml as [mcp.servers.<name>]";
  const near = nearestName(named, names);
  const meant = near === null ? "" : ` Did you mean ${near}?`;
  return `there is no MCP server "${named}".${meant} Configured servers: ${names.toSorted().join(", ")}; add others to parley.toml`;
}

/** Returns the tool's name at the server. When the server is off or failing and lists no tools, the given name is accepted. */
async function toolNamed(bus: Bus, server: string, named: string, to: McpSwitchRequest["to"]): Promise<string> {
  if (to === "restart") throw new WireError("INVALID_INPUT", "a single tool cannot be restarted; restart its server");
  const { servers, tools } = await ask(bus, { server });
  const tool = tools.find((each) => each.tool === named || each.name === named)?.tool;
  if (tool !== undefined) return tool;
  const prefix = `mcp__${server}__`;
  const own = named.startsWith(prefix) ? named.slice(prefix.length) : named;
  const { hidden = [] } = (await switchesOf(bus)).get(server) ?? {};
  // A hidden tool that the server no longer lists can still be unhidden.
  if (hidden.includes(own)) return own;
  const { state } = servers.find((each) => each.server === server) ?? {};
  if (tools.length === 0 && (state === "starting" || state === "restarting")) {
    throw new WireError("CONFLICT", `${server} is ${state} and its tools are not known yet; try again in a moment`);
  }
  if (tools.length === 0) return own;
  const near = nearestName(
    named,
    tools.map((each) => each.tool),
  );
  throw new WireError("NOT_FOUND", `${server} has no tool "${named}"${near === null ? "" : `; did you mean ${near}?`}`);
}

function viewOf(status: McpServerStatus, switches: ReadonlyMap<string, McpSwitch>): McpServerView {
  const switched = switches.get(status.server) ?? null;
  // A tool-runner applies a switch shortly after the store records it.
  return switched?.on === false
    ? { ...status, state: "off", tools: 0, problem: null, switched }
    : { ...status, switched };
}

function ask(bus: Bus, input: { server?: string }): Promise<OutputOf<typeof mcpLook>> {
  return answerOf("tool-runner", bus.request(mcpLook, input, { timeoutMs: lookMs }));
}

async function switchesOf(bus: Bus): Promise<Map<string, McpSwitch>> {
  const { switches } = await bus.request(store.mcpSwitches, {});
  return new Map(switches.map((each) => [each.server, each]));
}

function sameWord(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
