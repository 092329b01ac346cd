// MCP servers at run time: their state, tools and prompts, and switching them. Only the settings decide which servers exist.
import type { Bus } from "@parley/bus";
import {
  mcpConsent,
  mcpStatus,
  mcpPrompt,
  mcpPrompts,
  nearestName,
  operations,
  store,
  WireError,
  type McpChange,
  type McpServerStatus,
  type McpOverride,
  type OperationInput,
  type OperationOutput,
  type OutputOf,
} from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import { promptsText, serversText, switchedText, toolsText } from "./mcp-text.ts";
import { implement, OperationError, UsageError, type OperationCall, type OperationDeps } from "./operation.ts";
import { awaitService } from "./session-service.ts";

/** Slightly longer than a tool-runner waits for servers to list their prompts, or for one server to render a prompt. */
const listTimeoutMs = 12_000;
const promptTimeoutMs = 25_000;
/** Slightly longer than a tool-runner waits for a server that is starting. */
const consentTimeoutMs = 17_000;
const promptPattern = /^\/mcp__(.+?)__(.+)$/;

export type McpServerView = OperationOutput<typeof operations.mcpList>["servers"][number];
export type McpView = OperationOutput<typeof operations.mcpGet>;
export type McpSwitchRequest = OperationInput<typeof operations.mcpSwitchServer>;
/** The result of a switch; names are spelled as in the settings and on the server. */
export type McpOverrideResult = OperationOutput<typeof operations.mcpSwitchServer>;

export const mcpOperations = [
  implement(
    operations.mcpList,
    async (_input, { deps }) => ({ servers: await listServers(deps) }),
    ({ servers }) => serversText(servers),
  ),
  implement(
    operations.mcpGet,
    ({ server }, { deps }) => getServer(deps, server),
    ({ server, tools }) => toolsText(server, tools),
  ),
  implement(
    operations.mcpSwitchServer,
    (input, call) => controlServer(call, input),
    (output, _call, { action }) => switchedText(action, output),
  ),

  implement(operations.mcpConsentLink, ({ server }, { deps }) =>
    awaitService(
      "tool-runner",
      deps.bus.request(mcpConsent, { server }, { timeoutMs: consentTimeoutMs, attemptMs: consentTimeoutMs }),
    ),
  ),

  implement(operations.mcpPromptsList, async ({ server }, { deps }) => {
    const pending = deps.bus.request(mcpPrompts, omitUndefined({ server }), {
      timeoutMs: listTimeoutMs,
      attemptMs: listTimeoutMs,
    });
    const found = await awaitService("tool-runner", pending);
    return promptsText(found.prompts, found.servers);
  }),

  implement(operations.mcpPromptSend, ({ command, values }, call) => {
    const parsed = parsePrompt(command);
    if (parsed === undefined) throw new UsageError(`Unknown command ${command}.`);
    return sendPrompt(call, parsed, values);
  }),
];

/** The server and the prompt that a name `/mcp__<server>__<prompt>` contains; undefined for other names. */
export function parsePrompt(name: string): { server: string; prompt: string } | undefined {
  const [, server, prompt] = promptPattern.exec(name) ?? [];
  return server === undefined || prompt === undefined ? undefined : { server, prompt };
}

/** Sends the rendered prompt to the agent as the sender's own message; the answer goes to the sender's reply address. */
async function sendPrompt(
  { deps, speaker }: OperationCall,
  { server, prompt }: { server: string; prompt: string },
  values: string,
): Promise<string> {
  const input = { server, prompt, words: splitArguments(values) };
  const pending = deps.bus.request(mcpPrompt, input, { timeoutMs: promptTimeoutMs, attemptMs: promptTimeoutMs });
  const answer = await awaitService("tool-runner", pending);
  if (answer.outcome === "failed") {
    throw new OperationError("conflict", `${answer.message} /mcp prompts lists the available prompts.`);
  }
  const { route, channel, account, conversation, contact, role, direct, replyTo, ref } = speaker;
  await deps.say(
    {
      channel,
      account,
      externalId: `prompt:${ref}`.slice(0, 512),
      conversation,
      contact: omitUndefined(contact),
      role,
      origin: "user",
      direct,
      parts: answer.parts,
      replyTo,
    },
    route,
  );
  return `The prompt ${prompt} of ${server} was sent to the agent.`;
}

/** A tool-runner answers from memory. */
const statusTimeoutMs = 3_000;

type McpDeps = Pick<OperationDeps, "bus" | "settings">;

/** Returns the known state of all servers, sorted by name, without waiting for them. Throws ServiceUnavailableError when no tool-runner responds. */
async function listServers({ bus }: McpDeps): Promise<McpServerView[]> {
  const [{ servers }, switches] = await Promise.all([ask(bus, {}), switchesOf(bus)]);
  return servers.map((status) => viewOf(status, switches));
}

/**
 * Returns one server and its tools. Throws NOT_FOUND, CONFLICT for a server that the settings disable, or ServiceUnavailableError when
 * no tool-runner responds.
 */
async function getServer({ bus, settings }: McpDeps, named: string): Promise<McpView> {
  const server = serverNamed(settings, named);
  const [{ servers, tools }, switches] = await Promise.all([ask(bus, { server }), switchesOf(bus)]);
  const status = servers.find((each) => each.server === server);
  if (status === undefined) throw new WireError("NOT_FOUND", `no tool-runner has loaded ${server} yet; restart Parley`);
  // A tool-runner applies a switch shortly after the store records it.
  const hidden = new Set(switches.get(server)?.hidden);
  return { server: viewOf(status, switches), tools: tools.map((each) => ({ ...each, hidden: hidden.has(each.tool) })) };
}

/**
 * Switches a server, or one of its tools; repeating the same request has one effect. Throws NOT_FOUND for an unknown server or tool,
 * INVALID_INPUT for the restart of a tool, and CONFLICT for a server that the settings disable, a tool of a server that is starting,
 * and the restart of a server that is off.
 */
async function controlServer(
  call: OperationCall,
  { action: to, server: named, tool: namedTool }: McpSwitchRequest,
): Promise<McpOverrideResult> {
  const { deps, actor: by } = call;
  const server = serverNamed(deps.settings, named);
  const tool = namedTool === undefined ? null : await toolNamed(deps.bus, server, namedTool, to);
  const change: McpChange = tool === null ? { do: to } : { do: to === "on" ? "show" : "hide", tool };
  const opId = call.operationId(`mcp:${server}:${to}:${namedTool ?? ""}`);
  const answer = await deps.bus.request(store.mcpSwitch, { opId, server, change, by: by.slice(0, 300) });
  const { outcome } = answer;
  if (outcome === "off") throw new WireError("CONFLICT", `${server} is switched off; switch it on to start it`);
  return { server, tool, outcome, switch: answer.switch };
}

/** Finds a configured server by name; an exact match takes precedence over a case-insensitive one. */
function serverNamed({ mcp }: McpDeps["settings"], named: string): string {
  const names = Object.keys(mcp.servers);
  const server = names.find((name) => name === named) ?? names.find((name) => equalsIgnoreCase(name, named));
  if (server === undefined) throw new WireError("NOT_FOUND", noServerText(named, names));
  if (mcp.servers[server]?.enabled === false) {
    throw new WireError("CONFLICT", `${server} is disabled in parley.toml (enabled = false); enable it there`);
  }
  return server;
}

function noServerText(named: string, names: readonly string[]): string {
  if (names.length === 0) return "no MCP servers are configured; add one to parley.toml as [mcp.servers.<name>]";
  const near = nearestName(named, names);
  const suggestion = near === null ? "" : ` Did you mean ${near}?`;
  return `there is no MCP server "${named}".${suggestion} Configured servers: ${names.toSorted().join(", ")}; add others to parley.toml`;
}

/** Returns the tool's name at the server. When the server is off or failing and lists no tools, the given name is accepted. */
async function toolNamed(bus: Bus, server: string, named: string, to: McpSwitchRequest["action"]): Promise<string> {
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

function viewOf(status: McpServerStatus, switches: ReadonlyMap<string, McpOverride>): McpServerView {
  const switched = switches.get(status.server) ?? null;
  // A tool-runner applies a switch shortly after the store records it.
  return switched?.on === false
    ? { ...status, state: "off", tools: 0, problem: null, switched }
    : { ...status, switched };
}

function ask(bus: Bus, input: { server?: string }): Promise<OutputOf<typeof mcpStatus>> {
  return awaitService("tool-runner", bus.request(mcpStatus, input, { timeoutMs: statusTimeoutMs }));
}

async function switchesOf(bus: Bus): Promise<Map<string, McpOverride>> {
  const { switches } = await bus.request(store.mcpSwitches, {});
  return new Map(switches.map((each) => [each.server, each]));
}

function equalsIgnoreCase(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/** Splits arguments at white space; quotes enclose an argument that contains spaces. A quote without a partner is dropped. */
export function splitArguments(text: string): string[] {
  const parts = text.match(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g) ?? [];
  return parts.map((part) =>
    part.replaceAll(/"([^"]*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ""),
  );
}
