// Builds the descriptor of an MCP server's tool: description, effect class and risk. A server's annotations may raise the risk;
// they lower it only if the operator trusts the server. Pure.
import type { Tool as ServerTool } from "@modelcontextprotocol/client";
import type { ToolClass, ToolDescriptor, ToolRisk } from "@parley/contracts";
import { oneLine } from "./interaction/one-line.ts";
import type { McpServerConfig } from "./server-config.ts";
import { mcpToolName } from "./tool-names.ts";

/** UTF-16 units of a title. */
const maxTitleChars = 120;
/** Maximum characters of a schema as JSON; a larger schema is not shown, and only the server validates the arguments. */
const maxSchema = 16_000;

/** `maxDescription`: maximum characters of the server's own description. */
export function describeTool(plan: McpServerConfig, tool: ServerTool, maxDescription: number): ToolDescriptor {
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
    resource: { kind: "none" },
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
