// All MCP servers of this replica, which run independently of each other, and their tools by name.
import { setTimeout as delay } from "node:timers/promises";
import type { Tool as ServerTool } from "@modelcontextprotocol/client";
import type { Logger } from "@parley/chassis";
import type { McpServerStatus, McpSwitch, OutputOf, ToolDescriptor, mcpLook } from "@parley/contracts";
import type { Registry } from "../tool/registry.ts";
import { failure, type Tool } from "../tool/tool.ts";
import { callTool } from "./call-tool.ts";
import { limitTools } from "./limit-tools.ts";
import { providersOf } from "./oauth/providers.ts";
import type { TokenStore } from "./oauth/token-store.ts";
import type { McpConfig } from "./server-config.ts";
import { McpServer, type ServerTimes } from "./server.ts";
import { switchedOffText } from "./server-state.ts";
import { mcpPrefix, mcpToolName, serverPrefix } from "./tool-names.ts";

export interface ServersDeps {
  version: string;
  log: Logger;
  times: ServerTimes;
  vault: TokenStore | null;
  /** Called when the tools have changed, or when a server begins or ends its start. */
  changed: () => void;
}

/** Maximum bytes of all descriptors as JSON: the catalog is one bus message, and models are shown its tools. */
const maxCatalogBytes = 256 * 1024;

interface Offered {
  server: McpServer;
  tool: ServerTool;
  descriptor: ToolDescriptor;
}

export class McpServers {
  readonly #servers: readonly McpServer[];
  readonly #off: McpConfig["off"];
  readonly #changed: () => void;
  #offered = new Map<string, Offered>();
  #leftOut = new Map<string, number>();
  #starting: ReadonlySet<string> = new Set();
  /** By server: tools that people have hidden from the agent, and the number of requested restarts. */
  readonly #hidden = new Map<string, ReadonlySet<string>>();
  readonly #restarts = new Map<string, number>();
  #started = false;

  constructor(config: McpConfig, deps: ServersDeps) {
    this.#off = config.off;
    this.#changed = deps.changed;
    this.#servers = config.plans.map((plan) => {
      const providers = providersOf(plan, deps.vault);
      return new McpServer(plan, { ...deps, ...providers, changed: () => this.#collect() });
    });
  }

  /** Sorted by name. */
  get descriptors(): ToolDescriptor[] {
    return [...this.#offered.values()].map(({ descriptor }) => descriptor);
  }

  get statuses(): McpServerStatus[] {
    const on = this.#servers.map((server) => {
      const { plan } = server;
      const status = { ...server.status, tools: this.#shown(server).length };
      const missing = this.#leftOut.get(plan.name);
      if (missing === undefined) return status;
      const note = `${missing} of its tools are omitted because the catalog is full: list the tools you need in \`tools\``;
      return { ...status, problem: status.problem === null ? note : `${status.problem}; ${note}` };
    });
    const off = this.#off.map(({ name, problem }) => ({ server: name, state: "off" as const, tools: 0, problem }));
    return [...on, ...off].sort((a, b) => (a.server < b.server ? -1 : 1));
  }

  get all(): readonly McpServer[] {
    return this.#servers;
  }

  server(name: string): McpServer | undefined {
    return this.#servers.find(({ plan }) => plan.name === name);
  }

  start(): void {
    this.#started = true;
    for (const server of this.#servers) server.start();
  }

  /**
   * Applies the switches that people set. The first call starts the servers, so that a server that is off never runs. A server
   * without an entry is on, with all its tools.
   */
  follow(switches: readonly McpSwitch[]): void {
    const byName = new Map(switches.map((each) => [each.server, each]));
    let moved = false;
    for (const server of this.#servers) {
      const { name } = server.plan;
      const { on = true, hidden = [], restarts = 0 } = byName.get(name) ?? {};
      moved ||= this.#hidden.get(name)?.symmetricDifference(new Set(hidden)).size !== 0;
      this.#hidden.set(name, new Set(hidden));
      server.turn(on);
      if (this.#started && restarts > (this.#restarts.get(name) ?? 0)) server.restart();
      this.#restarts.set(name, restarts);
    }
    if (moved) this.#collect();
    if (!this.#started) this.start();
  }

  /** The tools that a server has listed, including hidden ones. */
  toolsOf(name: string): OutputOf<typeof mcpLook>["tools"] {
    const hidden = this.#hidden.get(name);
    return (this.server(name)?.tools ?? [])
      .map(({ name: tool }) => ({ tool, name: mcpToolName(name, tool), hidden: hidden?.has(tool) === true }))
      .sort((a, b) => (a.tool < b.tool ? -1 : 1));
  }

  /** Resolves when every server has finished its first start attempt, or after `withinMs`. */
  async settled(withinMs: number): Promise<void> {
    const waiting = new AbortController();
    const all = Promise.all(this.#servers.map((server) => server.settled()));
    await Promise.race([all, delay(withinMs, undefined, { signal: waiting.signal }).catch(() => undefined)]);
    waiting.abort();
  }

  /** Waits for a tool whose server is starting: after a restart of this replica no tools are listed yet. */
  async ready(name: string, signal: AbortSignal): Promise<void> {
    if (!this.#offered.has(name)) await this.#serverOf(name)?.started(signal);
  }

  /** A tool of a server; for a tool that is not available now, one that returns an error. */
  find(name: string): Tool | undefined {
    const offered = this.#offered.get(name);
    if (offered !== undefined) return toolOf(offered);
    const server = this.#serverOf(name);
    if (server === undefined) return undefined;
    const hidden = this.toolsOf(server.plan.name).some((each) => each.name === name && each.hidden);
    return goneTool(name, server, hidden);
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.close()));
  }

  #serverOf(tool: string): McpServer | undefined {
    return this.#servers.find(({ plan }) => tool.startsWith(serverPrefix(plan.name)));
  }

  #shown({ plan, tools }: McpServer): readonly ServerTool[] {
    const hidden = this.#hidden.get(plan.name);
    return hidden === undefined ? tools : tools.filter(({ name }) => !hidden.has(name));
  }

  #collect(): void {
    const listed = this.#servers.map((server) => ({ plan: server.plan, tools: this.#shown(server) }));
    const { fitting, leftOut } = limitTools(listed, maxCatalogBytes);
    const offered = new Map<string, Offered>();
    for (const { server: name, tool, descriptor } of fitting) {
      const server = this.server(name);
      if (server !== undefined) offered.set(descriptor.name, { server, tool, descriptor });
    }
    const before = this.#offered;
    this.#offered = offered;
    this.#leftOut = leftOut;
    const starting = this.#servers.filter(({ status }) => status.state === "starting").map(({ plan }) => plan.name);
    const isOther = this.#starting.symmetricDifference(new Set(starting)).size > 0;
    this.#starting = new Set(starting);
    if (isOther || !sameTools(before, offered)) this.#changed();
  }
}

/** The built-in tools together with those of the MCP servers. */
export function withServers(registry: Registry, servers: McpServers): Registry {
  return {
    get descriptors() {
      return [...registry.descriptors, ...servers.descriptors].sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    find: (name) => registry.find(name) ?? (name.startsWith(mcpPrefix) ? servers.find(name) : undefined),
    ready: (name, signal) => servers.ready(name, signal),
  };
}

function toolOf({ server, tool, descriptor }: Offered): Tool {
  return {
    descriptor,
    limits: [],
    call: async (args, context) => {
      if (!isObject(args)) return failure(`The arguments of ${descriptor.name} must be an object.`);
      return callTool(server, tool, args, context);
    },
  };
}

function goneTool(name: string, server: McpServer, hidden: boolean): Tool {
  return {
    descriptor: {
      name,
      aliases: [],
      summary: name,
      description: name,
      inputSchema: { type: "object" },
      class: "pure",
      readOnly: true,
      risk: "high",
      effects: [],
      resource: { kind: "none" },
      timeoutMs: server.plan.timeoutMs,
    },
    limits: [],
    call: async () => {
      if (!server.on) return failure(switchedOffText(server.plan.name));
      if (hidden) return failure(`The owner has disabled the tool ${name}; nothing was called.`);
      const { state, problem } = server.status;
      const why = problem === null ? "" : `: ${problem}`;
      return failure(
        `The MCP server ${server.plan.name} has no tool ${name} now; nothing was called. The server is ${state}${why}.`,
      );
    },
  };
}

function sameTools(before: ReadonlyMap<string, Offered>, after: ReadonlyMap<string, Offered>): boolean {
  const text = (tools: ReadonlyMap<string, Offered>) =>
    JSON.stringify([...tools.values()].map(({ descriptor }) => descriptor));
  return before.size === after.size && text(before) === text(after);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
