// Lists of tool names in the settings: the tools of an agent, of a profile or of the whole deployment.
import { z } from "zod";
import { nearestName } from "../suggest.ts";
import { builtInToolNames, isMcpToolName } from "../tool-names.ts";

/**
 * `*`, the name or an alias of a built-in tool, or a name that a tool of an MCP server can have: these tools are known only while the
 * server runs.
 */
const ToolName = z.string().superRefine((name, context) => {
  if (name === "*" || builtInToolNames.includes(name) || isMcpToolName(name)) return;
  const near = nearestName(name, builtInToolNames);
  const suggestion = near === null ? ";" : `; did you mean "${near}"?`;
  context.addIssue({
    code: "custom",
    message: `there is no tool "${name}"${suggestion} docs/tools.md lists the names`,
  });
});

export const ToolScope = z.array(ToolName);
