// The commands `parley mcp …`.

import type { CommandSpec } from "../command-line/command.ts";
import { jsonOption, targetOptions } from "../command-line/options.ts";

const target = { ...targetOptions, ...jsonOption } as const;
const one = { operands: "<server> [<tool>]", maxOperands: 2, options: target } as const;

export const mcpCommands: readonly CommandSpec[] = [
  {
    name: "mcp list",
    summary: "list the MCP servers and their states",
    details: "Servers are configured in parley.toml, [mcp.servers.<name>].",
    options: target,
    examples: ["parley mcp list", "parley mcp list --json | jq -r '.servers[] | select(.state != \"ready\").server'"],
    load: async () => (await import("../commands/mcp.ts")).list,
  },
  {
    name: "mcp tools",
    summary: "list the tools of one MCP server",
    operands: "<server>",
    maxOperands: 1,
    options: target,
    examples: ["parley mcp tools files"],
    load: async () => (await import("../commands/mcp.ts")).tools,
  },
  {
    name: "mcp on",
    summary: "switch an MCP server on, or show one of its hidden tools",
    ...one,
    examples: ["parley mcp on files", "parley mcp on files write_file"],
    load: async () => (await import("../commands/mcp.ts")).on,
  },
  {
    name: "mcp off",
    summary: "switch an MCP server off everywhere, or hide one of its tools",
    details: `It stays off, also after restarts, until you switch it on. Sessions keep the tool list they started with; a call
of a missing tool returns the reason.`,
    ...one,
    examples: ["parley mcp off files", "parley mcp off files write_file"],
    load: async () => (await import("../commands/mcp.ts")).off,
  },
  {
    name: "mcp restart",
    summary: "restart an MCP server now, on every tool-runner",
    operands: "<server>",
    maxOperands: 1,
    options: target,
    examples: ["parley mcp restart files"],
    load: async () => (await import("../commands/mcp.ts")).restart,
  },
];
