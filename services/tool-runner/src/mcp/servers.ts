// All MCP servers of this replica: started side by side, none of them in the way of another, and their tools by name.
import { setTimeout as delay } from "node:timers/promises";
import type { Notification, Tool as ServerTool } from "@modelcontextprotocol/client";
import type { Logger } from "@parley/chassis";
import type { McpServerStatus, McpSwitch, OutputOf, ToolDescriptor, mcpLook } from "@parley/contracts";
import type { Registry } from "../registry.ts";
import { failure, type Tool } from "../tool.ts";
import { callTool } from "./call-tool.ts";
import { fitTools } from "./fit-tools.ts";
import { providersOf } from "./oauth/providers.ts";
import type { Vault } from "./oauth/vault.ts";
import type { McpConfig } from "./plan.ts";
import { McpServer, type ServerTimes } from "./server.ts";
import { switchedOffText } from "./server-state.ts";
import { mcpPrefix, mcpToolName, serverPrefix } from "./tool-names.ts";

export interface ServersDeps {
  version: string;
  log: Logger;
  times: ServerTimes;
  vault: Vault | null;
  /** The tools are others than before, or a server began or ended its start. */
  changed: () => void;
}

/** Bytes as JSON of all descriptors: a list of tools is one message of the bus, and what a model is shown. */
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
  /** What a server says by itself; null: it was just reached. */
  onNotified: (server: string, notification: Notification | null) => void = () => undefined;
  #offered = new Map<string, Offered>();
  #leftOut = new Map<string, number>();
  #starting: ReadonlySet<string> = new Set();
  /** By server: tools that people have taken from the agent, and how often it was told to start again. */
  readonly #hidden = new Map<string, ReadonlySet<string>>();
  readonly #restarts = new Map<string, number>();
  #started = false;

  constructor(config: McpConfig, deps: ServersDeps) {
    this.#off = config.off;
    this.#changed = deps.changed;
    this.#servers = config.plans.map((plan) => {
      const providers = providersOf(plan, deps.vault);
      const notified = (notification: Notification | null) => this.onNotified(plan.name, notification);
      return new McpServer(plan, { ...deps, ...providers, changed: () => this.#collect(), notified });
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
      const note = `${missing} of its tools are left out, the list is full: name those you need in \`tools\``;
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
   * Does what people have switched: the first time before any server is started, so that one that is off never runs. What is not
   * listed is on, with all its tools.
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

  /** The tools of a server as it has listed them, those that people have hidden included. */
  toolsOf(name: string): OutputOf<typeof mcpLook>["tools"] {
    const hidden = this.#hidden.get(name);
    return (this.server(name)?.tools ?? [])
      .map(({ name: tool }) => ({ tool, name: mcpToolName(name, tool), hidden: hidden?.has(tool) === true }))
      .sort((a, b) => (a.tool < b.tool ? -1 : 1));
  }

  /** Resolves when every server has been tried once, or after `withinMs`. */
  async settled(withinMs: number): Promise<void> {
    const waiting = new AbortController();
    const all = Promise.all(this.#servers.map((server) => server.settled()));
    await Promise.race([all, delay(withinMs, undefined, { signal: waiting.signal }).catch(() => undefined)]);
    waiting.abort();
  }

  /** Waits for a tool whose server is being started: after a restart of this replica nothing is listed yet. */
  async ready(name: string, signal: AbortSignal): Promise<void> {
    if (!this.#offered.has(name)) await this.#serverOf(name)?.started(signal);
  }

  /** A tool of a server; for one that a server does not have now, a tool that says so. */
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
    const { fitting, leftOut } = fitTools(listed, maxCatalogBytes);
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

/** The tools of this house and those of its MCP servers. */
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
      if (hidden) return failure(`The owner has taken the tool ${name} from the agent; nothing was called.`);
      const { state, problem } = server.status;
      const why = problem === null ? "" : `: ${problem}`;
      return failure(
        `The MCP server ${server.plan.name} has no such tool now; nothing was called. It is ${state}${why}.`,
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
