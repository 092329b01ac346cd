// The commands `parley mcp …`.

import { api } from "../cluster/api.ts";
import { serversTable, switchedText, toolsTable } from "../tables/lists.ts";
import { operand, request, type CommandSpec } from "./command.ts";

const nameServer = "Name a server; `parley mcp list` shows them.";

function change(
  action: "on" | "off" | "restart",
  spec: Pick<CommandSpec, "summary" | "operands" | "examples" | "details">,
): CommandSpec {
  return request({ name: `mcp ${action}`, ...spec }, async (gateway, { positionals }) => {
    const input = { server: operand(positionals, nameServer), action, tool: positionals[1] };
    const switched = await gateway.run(api.switchServer, input);
    return { data: switched, text: () => switchedText(action, switched) };
  });
}

export const mcpCommands: readonly CommandSpec[] = [
  request(
    {
      name: "mcp list",
      summary: "list the MCP servers and their states",
      details: "Servers are configured in parley.toml, [mcp.servers.<name>].",
      examples: ["parley mcp list", "parley mcp list --json | jq -r '.servers[] | select(.state != \"ready\").server'"],
    },
    async (gateway) => {
      const found = await gateway.run(api.servers);
      return { data: found, text: (paint) => serversTable(found.servers, paint) };
    },
  ),
  request(
    {
      name: "mcp tools",
      summary: "list the tools of one MCP server",
      operands: ["<server>"],
      examples: ["parley mcp tools files"],
    },
    async (gateway, { positionals }) => {
      const found = await gateway.run(api.server, { server: operand(positionals, nameServer) });
      return { data: found, text: (paint) => toolsTable(found, paint) };
    },
  ),
  change("on", {
    summary: "switch an MCP server on, or show one of its hidden tools",
    operands: ["<server>", "[<tool>]"],
    examples: ["parley mcp on files", "parley mcp on files write_file"],
  }),
  change("off", {
    summary: "switch an MCP server off everywhere, or hide one of its tools",
    details: `It stays off, also after restarts, until you switch it on. Sessions keep the tool list they started with; a call
of a missing tool returns the reason.`,
    operands: ["<server>", "[<tool>]"],
    examples: ["parley mcp off files", "parley mcp off files write_file"],
  }),
  change("restart", {
    summary: "restart an MCP server now, on every tool-runner",
    operands: ["<server>"],
    examples: ["parley mcp restart files"],
  }),
];
