// The tools of MCP servers in the catalog: their names, descriptors and total size. Pure. A server's annotations may raise a tool's risk;
// they lower it only if the operator trusts the server. Too large a catalog first shortens the descriptions of the largest server,
// repeatedly; then it drops the last tools of each server.
import { createHash } from "node:crypto";
import type { Tool as ServerTool } from "@modelcontextprotocol/client";
import type { ToolClass, ToolDescriptor, ToolRisk } from "@parley/contracts";
import { oneLine } from "@parley/kit";
import type { McpServerConfig } from "./server-config.ts";

export const mcpPrefix = "mcp__";
const maxName = 64;
const hashCharacters = 8;

/**
 * `mcp__<server>__<tool>`, independent of other tools. A name that is too long or has invalid characters is shortened or cleaned and ends in a hash of the
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

interface Listed {
  plan: McpServerConfig;
  tools: readonly ServerTool[];
}

interface ListedTool {
  server: string;
  tool: ServerTool;
  descriptor: ToolDescriptor;
  /** Size of the descriptor as JSON. */
  bytes: number;
}

/** Maximum characters of a tool's description: the default, then two shorter steps. */
const descriptionSteps = [1_500, 500, 150];

/** Returns the tools sorted by name. `maxBytes` limits all descriptors as JSON. */
export function limitTools(
  listed: readonly Listed[],
  maxBytes: number,
): { fitting: ListedTool[]; leftOut: Map<string, number> } {
  const shares = listed.map((each) => ({ ...each, step: 0, fitting: describeTools(each, 0) }));
  while (sumBytes(shares.flatMap(({ fitting }) => fitting)) > maxBytes) {
    const [largest] = shares
      .filter(({ step }) => step < descriptionSteps.length - 1)
      .sort((a, b) => sumBytes(b.fitting) - sumBytes(a.fitting));
    if (largest === undefined) return deal(shares, maxBytes);
    largest.step += 1;
    largest.fitting = describeTools(largest, largest.step);
  }
  return { fitting: sorted(shares.flatMap(({ fitting }) => fitting)), leftOut: new Map() };
}

function describeTools({ plan, tools }: Listed, step: number): ListedTool[] {
  // A server may list a name twice: the first one counts.
  const byName = new Map<string, ListedTool>();
  for (const tool of tools.toReversed()) {
    const descriptor = describeTool(plan, tool, descriptionSteps[step] ?? 0);
    const bytes = Buffer.byteLength(JSON.stringify(descriptor));
    byName.set(descriptor.name, { server: plan.name, tool, descriptor, bytes });
  }
  return sorted([...byName.values()]);
}

/** Adds one tool of each server in turn, as long as they fit. */
function deal(shares: readonly { plan: McpServerConfig; fitting: ListedTool[] }[], maxBytes: number) {
  const fitting: ListedTool[] = [];
  const leftOut = new Map<string, number>();
  let leftBytes = maxBytes;
  const longest = Math.max(...shares.map((share) => share.fitting.length));
  for (let round = 0; round < longest; round++) {
    for (const { plan, fitting: own } of shares) {
      const next = own[round];
      if (next === undefined) continue;
      if (next.bytes <= leftBytes) {
        leftBytes -= next.bytes;
        fitting.push(next);
      } else leftOut.set(plan.name, (leftOut.get(plan.name) ?? 0) + 1);
    }
  }
  return { fitting: sorted(fitting), leftOut };
}

function sumBytes(tools: readonly ListedTool[]): number {
  return tools.reduce((sum, { bytes }) => sum + bytes, 0);
}

function sorted(tools: ListedTool[]): ListedTool[] {
  return tools.toSorted((a, b) => (a.descriptor.name < b.descriptor.name ? -1 : 1));
}

/** UTF-16 units of a title. */
const maxTitleChars = 120;
/** Maximum characters of a schema as JSON; a larger schema is not shown, and only the server validates the arguments. */
const maxSchema = 16_000;

/** `maxDescription`: maximum characters of the server's own description. */
function describeTool(plan: McpServerConfig, tool: ServerTool, maxDescription: number): ToolDescriptor {
  const own = oneLine(tool.title ?? tool.annotations?.title ?? tool.name, maxTitleChars);
  const about = tool.description?.trim() ?? "";
  return {
    name: mcpToolName(plan.name, tool.name),
    aliases: [],
    summary: `${own} (MCP server ${plan.name})`,
    description: `Tool "${tool.name}" of the MCP server ${plan.name}. The server's description: ${cut(about === "" ? own : about, maxDescription)}`,
    inputSchema: inputSchema(tool.inputSchema),
    class: classOf(plan, tool),
    readOnly: believesReadOnly(plan, tool),
    risk: riskOf(plan, tool),
    effects: believesReadOnly(plan, tool)
      ? ["reads_untrusted", "sends_out"]
      : ["reads_untrusted", "sends_out", "executes"],
    // What a server changes is unknown.
    resource: { kind: believesReadOnly(plan, tool) ? "none" : "path" },
    timeoutMs: plan.timeoutMs,
    ...(plan.asksMs === 0 ? {} : { asksMs: plan.asksMs }),
  };
}

function believesReadOnly(plan: McpServerConfig, { annotations }: ServerTool): boolean {
  return plan.trustAnnotations && annotations?.readOnlyHint === true && annotations.destructiveHint !== true;
}

function classOf(plan: McpServerConfig, tool: ServerTool): ToolClass {
  if (believesReadOnly(plan, tool)) return "pure";
  return plan.trustAnnotations && tool.annotations?.idempotentHint === true ? "idempotent" : "once";
}

function riskOf(plan: McpServerConfig, { annotations }: ServerTool): ToolRisk {
  return plan.risk ?? (annotations?.destructiveHint === true ? "critical" : "high");
}

/** Replaces a schema that is not an object schema, or too large, by one that accepts any object. */
function inputSchema(schema: unknown): Record<string, unknown> {
  const anything = { type: "object", additionalProperties: true };
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return anything;
  const { $schema: _, ...own }: Record<string, unknown> = { ...schema };
  return own["type"] === "object" && JSON.stringify(own).length <= maxSchema ? own : anything;
}

function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max).toWellFormed()} [cut]`;
}
