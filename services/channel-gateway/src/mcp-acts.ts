// What people do with MCP servers while Parley runs, whichever way they ask for it: a command or the HTTP API. Which servers there
// are is for the settings alone to say.
import type { Bus } from "@parley/bus";
import {
  mcpLook,
  nearest,
  store,
  WireError,
  type McpChange,
  type McpServerStatus,
  type McpSwitch,
  type OutputOf,
  type ParleySettings,
} from "@parley/contracts";
import { answerOf } from "./session-acts.ts";

/** A tool-runner answers by heart. */
const lookMs = 3_000;

interface McpDeps {
  bus: Bus;
  settings: Pick<ParleySettings, "mcp">;
}

/** A server as a tool-runner sees it, and what people have switched of it. */
export interface McpServerView extends McpServerStatus {
  /** Null: nothing, ever. */
  switched: McpSwitch | null;
}

export type McpTools = OutputOf<typeof mcpLook>["tools"];

export interface McpOrder {
  to: "on" | "off" | "restart";
  server: string;
  /** As the server or the agent calls it; left out: the whole server. */
  tool?: string | undefined;
}

/** What an order has come to; names as the settings and the server write them. */
export interface McpOutcome {
  server: string;
  tool: string | null;
  /** `same`: it was so already. */
  outcome: "done" | "same";
  switch: McpSwitch;
}

/** Sorted by name; at once with what is known. Throws NobodyThere when no tool-runner answers. */
export async function lookAtServers({ bus }: McpDeps): Promise<McpServerView[]> {
  const [{ servers }, switches] = await Promise.all([ask(bus, {}), switchesOf(bus)]);
  return servers.map((status) => viewOf(status, switches));
}

/** One server and its tools. Throws NOT_FOUND, and NobodyThere when no tool-runner answers. */
export async function lookAtServer(
  { bus, settings }: McpDeps,
  named: string,
): Promise<{ server: McpServerView; tools: McpTools }> {
  const server = serverNamed(settings, named);
  const [{ servers, tools }, switches] = await Promise.all([ask(bus, { server }), switchesOf(bus)]);
  const status = servers.find((each) => each.server === server);
  if (status === undefined) throw new WireError("NOT_FOUND", `no tool-runner knows ${server} yet; start Parley again`);
  return { server: viewOf(status, switches), tools };
}

/**
 * Switches a server, or one of its tools. The same `opId` is the same order. Throws NOT_FOUND for a server or a tool that there is not, CONFLICT for
 * a server that is off in the settings, or is to be started again while it is off.
 */
export async function switchServer(
  deps: McpDeps,
  { to, server: named, tool: namedTool }: McpOrder,
  { by, opId }: { by: string; opId: string },
): Promise<McpOutcome> {
  const server = serverNamed(deps.settings, named);
  const tool = namedTool === undefined ? null : await toolNamed(deps.bus, server, namedTool, to);
  const change: McpChange = tool === null ? { do: to } : { do: to === "on" ? "show" : "hide", tool };
  const answer = await deps.bus.request(store.mcpSwitch, { opId, server, change, by: by.slice(0, 300) });
  const { outcome } = answer;
  if (outcome === "off") throw new WireError("CONFLICT", `${server} is switched off; switch it on, and it is started`);
  return { server, tool, outcome, switch: answer.switch };
}

/** The server of the settings that is meant, whatever its case. */
function serverNamed({ mcp }: McpDeps["settings"], named: string): string {
  const names = Object.keys(mcp.servers);
  const server = names.find((name) => name === named) ?? names.find((name) => sameWord(name, named));
  if (server === undefined) throw new WireError("NOT_FOUND", noServerText(named, names));
  if (mcp.servers[server]?.enabled === false) {
    throw new WireError("CONFLICT", `${server} is off in parley.toml (enabled = false), and is switched on only there`);
  }
  return server;
}

function noServerText(named: string, names: readonly string[]): string {
  if (names.length === 0) return "there are no MCP servers; [mcp.servers.<name>] in parley.toml adds one";
  const near = nearest(named, names);
  const meant = near === null ? "" : ` Did you mean ${near}?`;
  return `there is no MCP server "${named}".${meant} There are ${names.toSorted().join(", ")}; a new one is added in parley.toml`;
}

/** As the server calls it. One that has listed nothing because it is off or does not work is taken at the person's word. */
async function toolNamed(bus: Bus, server: string, named: string, to: McpOrder["to"]): Promise<string> {
  if (to === "restart") throw new WireError("INVALID_INPUT", "a server is started again as a whole, not a tool of it");
  const { servers, tools } = await ask(bus, { server });
  const tool = tools.find((each) => each.tool === named || each.name === named)?.tool;
  if (tool !== undefined) return tool;
  const prefix = `mcp__${server}__`;
  const own = named.startsWith(prefix) ? named.slice(prefix.length) : named;
  const { hidden = [] } = (await switchesOf(bus)).get(server) ?? {};
  // One that has left the server can still be shown again.
  if (hidden.includes(own)) return own;
  const { state } = servers.find((each) => each.server === server) ?? {};
  if (tools.length === 0 && (state === "starting" || state === "restarting")) {
    throw new WireError("CONFLICT", `${server} is ${state}, and its tools are not known yet; try again in a moment`);
  }
  if (tools.length === 0) return own;
  const near = nearest(
    named,
    tools.map((each) => each.tool),
  );
  throw new WireError("NOT_FOUND", `${server} has no tool "${named}"${near === null ? "" : `; did you mean ${near}?`}`);
}

function viewOf(status: McpServerStatus, switches: ReadonlyMap<string, McpSwitch>): McpServerView {
  const switched = switches.get(status.server) ?? null;
  // A tool-runner may be a moment behind the store.
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
