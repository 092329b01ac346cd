// What a tool of an MCP server is called here. Pure, and of one tool alone: another tool that comes or goes renames nothing.
import { createHash } from "node:crypto";

export const mcpPrefix = "mcp__";
const maxName = 64;
const hashCharacters = 8;

/**
 * `mcp__<server>__<tool>`. A name that is too long, or has characters a tool's name may not have, is cut or cleaned and ends in a hash of
 * what the server calls it, so that no two become one.
 */
export function mcpToolName(server: string, tool: string): string {
  const prefix = serverPrefix(server);
  const clean = tool.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  const plain = prefix + clean;
  if (clean === tool && tool !== "" && plain.length <= maxName) return plain;
  const hash = createHash("sha256").update(tool).digest("hex").slice(0, hashCharacters);
  return `${plain.slice(0, maxName - hashCharacters - 1)}_${hash}`;
}

/** How the names of a server's tools begin. */
export function serverPrefix(server: string): string {
  return `${mcpPrefix}${server}__`;
}
