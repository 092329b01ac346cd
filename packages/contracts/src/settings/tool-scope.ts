// Lists of tools in the settings: which tools an agent, a profile or the deployment has.
import { z } from "zod";
import { nearestName } from "../suggest.ts";
import { builtInToolNames, isMcpToolName } from "../tool-names.ts";

/** `*`, the name or an alias of a built-in tool, or the name of a tool of an MCP server, which is known only while the server runs. */
const ScopedTool = z.string().superRefine((name, context) => {
  if (name === "*" || builtInToolNames.includes(name) || isMcpToolName(name)) return;
  const near = nearestName(name, builtInToolNames);
  const suggestion = near === null ? "" : `; did you mean "${near}"?`;
  context.addIssue({
    code: "custom",
    message: `there is no tool "${name}"${suggestion} docs/tools.md lists the names`,
  });
});

export const ToolScope = z.array(ScopedTool);
