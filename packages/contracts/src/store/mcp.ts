// Switches that people set on MCP servers at run time. The settings define which servers exist; the switches define which of them are on.
import { z } from "zod";
import { storeRequest } from "./shared.ts";

/** Maximum hidden tools of one server; to hide more, use `tools` in its settings. */
export const maxHiddenTools = 200;
const server = z.string().min(1).max(64);
const tool = z.string().min(1).max(256);

const McpSwitchSchema = z.object({
  /** Its name in the settings. */
  server: z.string(),
  /** False: its program does not run, and the agent has none of its tools. */
  on: z.boolean(),
  /** Tools that the agent does not have, by the server's names, sorted. */
  hidden: z.array(z.string()),
  /** Number of restart requests. A tool-runner that has seen fewer of them restarts the server. */
  restarts: z.number().int(),
  /** Who changed it last, and when (ISO 8601, UTC). */
  by: z.string(),
  at: z.string(),
});
export type McpOverride = z.infer<typeof McpSwitchSchema>;

export const mcpSwitches = storeRequest({
  subject: "store.mcp.switches",
  clients: ["tool-runner", "channel-gateway"],
  doc: "List the switches of MCP servers, sorted by server. A server that is not listed is on, with all tools that the settings allow.",
  input: z.object({}),
  output: z.object({ switches: z.array(McpSwitchSchema) }),
});

export const mcpSwitch = storeRequest({
  subject: "store.mcp.switch",
  clients: ["channel-gateway"],
  doc: "Switch an MCP server on or off, restart it, or hide or show one of its tools, for the whole deployment, until changed back. Only a server that is on can be restarted (`off`). TOO_LARGE when too many tools would be hidden.",
  input: z.object({
    opId: z.uuid(),
    server,
    change: z.discriminatedUnion("do", [
      z.object({ do: z.enum(["on", "off", "restart"]) }),
      z.object({ do: z.enum(["hide", "show"]), tool }),
    ]),
    /** Who made the change. */
    by: z.string().min(1).max(300),
  }),
  output: z.object({
    /** `same`: no change was necessary. `off`: the server is off and cannot be restarted. */
    outcome: z.enum(["done", "same", "off"]),
    switch: McpSwitchSchema,
  }),
});
export type McpChange = z.infer<typeof mcpSwitch.input>["change"];
