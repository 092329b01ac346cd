// What the agent is told of a tool of an MCP server, and what permissions and crashes make of it. What a server says of its tools
// may raise suspicion; it lowers it only where the operator trusts the server. Pure.
import type { Tool as ServerTool } from "@modelcontextprotocol/client";
import type { ToolClass, ToolDescriptor, ToolRisk } from "@parley/contracts";
import { oneLine } from "./one-line.ts";
import type { McpServerPlan } from "./plan.ts";
import { mcpToolName } from "./tool-names.ts";

/** UTF-16 units of a title. */
const maxTitleChars = 120;
/** Characters of a schema as JSON; a larger one is not shown, and the server itself checks the arguments. */
const maxSchema = 16_000;

/** `maxDescription`: characters of the server's own description that are kept. */
export function describeTool(plan: McpServerPlan, tool: ServerTool, maxDescription: number): ToolDescriptor {
  const own = oneLine(tool.title ?? tool.annotations?.title ?? tool.name, maxTitleChars);
  const about = tool.description?.trim() ?? "";
  return {
    name: mcpToolName(plan.name, tool.name),
    aliases: [],
    summary: `${own} (MCP server ${plan.name})`,
    description: `Tool "${tool.name}" of the MCP server ${plan.name}, which describes it so: ${cut(about === "" ? own : about, maxDescription)}`,
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

function believesReadOnly(plan: McpServerPlan, { annotations }: ServerTool): boolean {
  return plan.trustAnnotations && annotations?.readOnlyHint === true && annotations.destructiveHint !== true;
}

function classOf(plan: McpServerPlan, tool: ServerTool): ToolClass {
  if (believesReadOnly(plan, tool)) return "pure";
  return plan.trustAnnotations && tool.annotations?.idempotentHint === true ? "idempotent" : "once";
}

function riskOf(plan: McpServerPlan, { annotations }: ServerTool): ToolRisk {
  return plan.risk ?? (annotations?.destructiveHint === true ? "critical" : "high");
}

/** A schema whose root is no object, or one that is too large, becomes one that takes any object. */
function inputSchema(schema: unknown): Record<string, unknown> {
  const anything = { type: "object", additionalProperties: true };
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return anything;
  const { $schema: _, ...own }: Record<string, unknown> = { ...schema };
  return own["type"] === "object" && JSON.stringify(own).length <= maxSchema ? own : anything;
}

function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max).toWellFormed()} [cut]`;
}
