// The commands `parley mcp …`.

import type { CommandSpec } from "../command-line/command.ts";
import { jsonOption, targetOptions } from "../command-line/options.ts";

const target = { ...targetOptions, ...jsonOption } as const;
const one = { operands: "<server> [<tool>]", maxOperands: 2, options: target } as const;

export const mcpCommands: readonly CommandSpec[] = [
  {
    name: "mcp list",
    summary: "the MCP servers and how they are",
    details: "Which servers there are is written in parley.toml, [mcp.servers.<name>].",
    options: target,
    examples: ["parley mcp list", "parley mcp list --json | jq -r '.servers[] | select(.state != \"ready\").server'"],
    load: async () => (await import("../commands/mcp.ts")).list,
  },
  {
    name: "mcp tools",
    summary: "the tools of one MCP server",
    operands: "<server>",
    maxOperands: 1,
    options: target,
    examples: ["parley mcp tools files"],
    load: async () => (await import("../commands/mcp.ts")).tools,
  },
  {
    name: "mcp on",
    summary: "switch an MCP server on again, or show a tool of it that was hidden",
    ...one,
    examples: ["parley mcp on files", "parley mcp on files write_file"],
    load: async () => (await import("../commands/mcp.ts")).on,
  },
  {
    name: "mcp off",
    summary: "switch an MCP server off everywhere, or hide one tool of it",
    details: `It stays so, restarts included, until it is switched on. Conversations keep the list of tools they began with; a call
of a tool that is gone is answered with why.`,
    ...one,
    examples: ["parley mcp off files", "parley mcp off files write_file"],
    load: async () => (await import("../commands/mcp.ts")).off,
  },
  {
    name: "mcp restart",
    summary: "start an MCP server again now, on every tool-runner",
    operands: "<server>",
    maxOperands: 1,
    options: target,
    examples: ["parley mcp restart files"],
    load: async () => (await import("../commands/mcp.ts")).restart,
  },
];
