// Assembles the MCP part of this service: the servers, their tools in the registry, and the subjects about them.
import { dirname, basename, join } from "node:path";
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { mcpLook, toolsChanged, type McpServerStatus } from "@parley/contracts";
import type { Registry } from "../tool/registry.ts";
import { followSwitches } from "./sync-switches.ts";
import { serveAuthorize } from "./oauth/authorize.ts";
import { TokenStore } from "./oauth/token-store.ts";
import type { McpConfig } from "./server-config.ts";
import { resourceTools } from "./resource-tools.ts";
import { restartTimes } from "./restart.ts";
import { servePrompts } from "./serve-prompts.ts";
import type { ServerTimes } from "./server.ts";
import { McpServers, withServers } from "./servers.ts";
import type { Tool } from "../tool/tool.ts";

const serverTimes: ServerTimes = { ...restartTimes, readyMs: 15_000, aliveMs: 5_000 };

export interface McpDeps {
  bus: Bus;
  log: Logger;
  runner: string;
  /** The workspace. */
  root: string;
  version: string;
  times: Partial<ServerTimes> | undefined;
}

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

/** Starts the enabled servers as soon as the store has returned the switches; does not wait for them. */
export function openMcp(config: McpConfig, { bus, log, runner, root, version, times }: McpDeps): Mcp {
  const vault = config.key === null ? null : new TokenStore(join(dirname(root), `.${basename(root)}-mcp`), config.key);
  const servers = new McpServers(config, {
    version,
    log,
    times: { ...serverTimes, ...times },
    vault,
    changed: () => bus.publish(toolsChanged, { runner }),
  });
  const authorize = serveAuthorize({
    bus,
    log,
    plans: config.plans,
    vault,
    authorized: (name) => servers.server(name)?.retry(),
  });
  const prompts = servePrompts(bus, servers);
  for (const { name, problem } of config.off)
    log.warn({ mcp: name, problem }, "MCP server disabled: its configuration cannot be used");
  const looks = bus.serve(mcpLook, async ({ server }) => ({
    runner,
    servers: servers.statuses,
    tools: server === undefined ? [] : servers.toolsOf(server),
  }));
  const following = config.plans.length === 0 ? null : followSwitches({ bus, log, servers });
  const configured = config.plans.length + config.off.length > 0;
  return {
    tools: resourceTools(servers),
    servers,
    around: (registry) => withServers(registry, servers),
    statuses: () => (configured ? servers.statuses : undefined),
    close: async () => {
      following?.close();
      looks.close();
      authorize.close();
      prompts.close();
      await servers.close();
    },
  };
}
