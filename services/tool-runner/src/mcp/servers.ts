// All MCP servers of this replica, which run independently of each other, their tools by name, and the subjects about them.
import { basename, dirname, join } from "node:path";
import type { Tool as ServerTool } from "@modelcontextprotocol/client";
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import {
  mcpConsent,
  mcpStatus,
  toolsChanged,
  type McpServerStatus,
  type McpOverride,
  type OutputOf,
  type ToolDescriptor,
} from "@parley/contracts";
import { abortable, oneLine } from "@parley/kit";
import type { Registry } from "../tool/registry.ts";
import { failure, type Tool } from "../tool/tool.ts";
import { callTool } from "./call-tool.ts";
import { switchedOffText } from "./failures.ts";
import { limitTools, mcpPrefix, mcpToolName, serverPrefix } from "./catalog.ts";
import { serveAuthorize } from "./oauth/authorize.ts";
import { providersOf } from "./oauth/providers.ts";
import { TokenStore } from "./oauth/token-store.ts";
import { servePrompts } from "./prompts.ts";
import { resourceTools } from "./resource-tools.ts";
import { restartTimes, type McpConfig, type ServerTimes } from "./server-config.ts";
import { McpServer } from "./server.ts";
import { followSwitches } from "./sync-switches.ts";

/** Maximum bytes of all descriptors as JSON: the catalog is one bus message, and models are shown its tools. */
const maxCatalogBytes = 256 * 1024;

/** How long a request for a link waits for a server that is starting. */
const consentMs = 15_000;

const serverTimes: ServerTimes = { ...restartTimes, aliveMs: 5_000 };

export interface Mcp {
  /** Built-in tools for working with the servers. */
  readonly tools: readonly Tool[];
  readonly servers: McpServers;
  /** A registry with the servers' tools in addition to its own. */
  around(registry: Registry): Registry;
  /** Undefined when no server is configured. */
  statuses(): McpServerStatus[] | undefined;
  close(): Promise<void>;
}

export interface McpDeps {
  bus: Bus;
  log: Logger;
  runner: string;
  /** The workspace. */
  root: string;
  version: string;
  times: Partial<ServerTimes> | undefined;
}

/** Of the one line on a tool in lists for people. */
const maxSummaryCharacters = 200;

/** Starts the enabled servers as soon as the store has returned the switches; does not wait for them. */
export function openMcp(config: McpConfig, { bus, log, runner, root, version, times }: McpDeps): Mcp {
  const { plans, off, key } = config;
  const vault = key === null ? null : new TokenStore(join(dirname(root), `.${basename(root)}-mcp`), key);
  const changed = () => bus.publish(toolsChanged, { runner });
  const servers = new McpServers(config, { version, log, times: { ...serverTimes, ...times }, vault, changed });
  for (const { name, problem } of off)
    log.warn({ mcp: name, reason: problem }, "MCP server disabled: its configuration cannot be used");
  const authorized = (name: string) => servers.server(name)?.retry();
  const served = [
    serveAuthorize({ bus, log, plans, vault, authorized }),
    servePrompts(bus, servers),
    bus.serve(mcpStatus, async ({ server }) => ({
      runner,
      servers: servers.statuses,
      tools: server === undefined ? [] : servers.toolsOf(server),
    })),
    bus.serve(mcpConsent, async ({ server }) => ({
      link: (await servers.server(server)?.consentLink(AbortSignal.timeout(consentMs))) ?? null,
    })),
    ...(plans.length === 0 ? [] : [followSwitches({ bus, log, servers })]),
  ];
  return {
    tools: resourceTools(servers),
    servers,
    around: (registry) => ({
      get descriptors() {
        return [...registry.descriptors, ...servers.descriptors].sort((a, b) => (a.name < b.name ? -1 : 1));
      },
      find: (name) => registry.find(name) ?? (name.startsWith(mcpPrefix) ? servers.find(name) : undefined),
      ready: (name, signal) => servers.ready(name, signal),
    }),
    statuses: () => (plans.length + off.length > 0 ? servers.statuses : undefined),
    close: async () => {
      for (const each of served) each.close();
      await servers.close();
    },
  };
}

export interface ServersDeps {
  version: string;
  log: Logger;
  times: ServerTimes;
  vault: TokenStore | null;
  /** Called when the tools have changed, or when a server begins or ends its start. */
  changed: () => void;
}

interface Offered {
  server: McpServer;
  tool: ServerTool;
  descriptor: ToolDescriptor;
}

export class McpServers {
  readonly all: readonly McpServer[];
  readonly #off: McpConfig["off"];
  readonly #changed: () => void;
  #offered = new Map<string, Offered>();
  #leftOut = new Map<string, number>();
  /** What `changed` reported last: descriptors and starting servers. */
  #reported = "";
  /** By server: tools that people have hidden from the agent, and the number of requested restarts. */
  readonly #hidden = new Map<string, ReadonlySet<string>>();
  readonly #restarts = new Map<string, number>();
  #started = false;

  constructor(config: McpConfig, { vault, changed, ...deps }: ServersDeps) {
    this.#off = config.off;
    this.#changed = changed;
    this.all = config.plans.map(
      (plan) => new McpServer(plan, { ...deps, ...providersOf(plan, vault), changed: () => this.#collect() }),
    );
  }

  /** Sorted by name. */
  get descriptors(): ToolDescriptor[] {
    return [...this.#offered.values()].map(({ descriptor }) => descriptor);
  }

  get statuses(): McpServerStatus[] {
    const on = this.all.map((server) => {
      const status = { ...server.status, tools: this.#shown(server).length };
      const missing = this.#leftOut.get(server.plan.name);
      if (missing === undefined) return status;
      const note = `${missing} of its tools are omitted because the catalog is full: list the tools you need in \`tools\``;
      return { ...status, problem: status.problem === null ? note : `${status.problem}; ${note}` };
    });
    const off = this.#off.map(({ name, problem }) => ({ server: name, state: "off" as const, tools: 0, problem }));
    return [...on, ...off].sort((a, b) => (a.server < b.server ? -1 : 1));
  }

  server(name: string): McpServer | undefined {
    return this.all.find(({ plan }) => plan.name === name);
  }

  start(): void {
    this.#started = true;
    for (const server of this.all) server.start();
  }

  /**
   * Applies the switches that people set. The first call starts the servers, so that a server that is off never runs. A server
   * without an entry is on, with all its tools.
   */
  follow(switches: readonly McpOverride[]): void {
    const byName = new Map(switches.map((each) => [each.server, each]));
    let moved = false;
    for (const server of this.all) {
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
  toolsOf(name: string): OutputOf<typeof mcpStatus>["tools"] {
    const hidden = this.#hidden.get(name);
    return (this.server(name)?.tools ?? [])
      .map(({ name: tool, title = tool, description = title }) => ({
        tool,
        name: mcpToolName(name, tool),
        summary: oneLine(description, maxSummaryCharacters),
        hidden: hidden?.has(tool) === true,
      }))
      .sort((a, b) => (a.tool < b.tool ? -1 : 1));
  }

  /** Resolves when every server has finished its first start attempt, or after `withinMs`. */
  async settled(withinMs: number): Promise<void> {
    const all = Promise.all(this.all.map((server) => server.settled()));
    await abortable(all, AbortSignal.timeout(withinMs)).catch(() => undefined);
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
    return missingTool(name, server, hidden);
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((server) => server.close()));
  }

  #serverOf(tool: string): McpServer | undefined {
    return this.all.find(({ plan }) => tool.startsWith(serverPrefix(plan.name)));
  }

  #shown({ plan, tools }: McpServer): readonly ServerTool[] {
    const hidden = this.#hidden.get(plan.name);
    return hidden === undefined ? tools : tools.filter(({ name }) => !hidden.has(name));
  }

  #collect(): void {
    const listed = this.all.map((server) => ({ plan: server.plan, tools: this.#shown(server) }));
    const { fitting, leftOut } = limitTools(listed, maxCatalogBytes);
    this.#offered = new Map();
    for (const { server: name, tool, descriptor } of fitting) {
      const server = this.server(name);
      if (server !== undefined) this.#offered.set(descriptor.name, { server, tool, descriptor });
    }
    this.#leftOut = leftOut;
    const report = this.#report();
    if (report !== this.#reported) this.#changed();
    this.#reported = report;
  }

  #report(): string {
    const starting = this.all.filter(({ status }) => status.state === "starting").map(({ plan }) => plan.name);
    return JSON.stringify([starting, this.descriptors]);
  }
}

function toolOf({ server, tool, descriptor }: Offered): Tool {
  return {
    descriptor,
    limits: [],
    call: async (args, context) => {
      if (typeof args !== "object" || args === null || Array.isArray(args))
        return failure(`The arguments of ${descriptor.name} must be an object.`);
      return callTool(server, tool, { ...args }, context);
    },
  };
}

function missingTool(name: string, server: McpServer, hidden: boolean): Tool {
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
