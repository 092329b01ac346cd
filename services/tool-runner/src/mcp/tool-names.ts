// Names of MCP servers' tools in the catalog. Pure. A name depends on its own tool only: adding or removing other tools does not
// change it.
import { createHash } from "node:crypto";

export const mcpPrefix = "mcp__";
const maxName = 64;
const hashCharacters = 8;

/**
 * `mcp__<server>__<tool>`. A name that is too long or has invalid characters is shortened or cleaned and ends in a hash of the
 * original name, so that names stay unique.
 */
export function mcpToolName(server: string, tool: string): string {
  const prefix = serverPrefix(server);
  const clean = tool.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  const plain = prefix + clean;
  if (clean === tool && tool !== "" && plain.length <= maxName) return plain;
  const hash = createHash("sha256").update(tool).digest("hex").slice(0, hashCharacters);
  return `${plain.slice(0, maxName - hashCharacters - 1)}_${hash}`;
}

/** The prefix of the names of a server's tools. */
export function serverPrefix(server: string): string {
  return `${mcpPrefix}${server}__`;
}
