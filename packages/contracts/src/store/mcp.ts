// What people have switched of MCP servers while the deployment runs. The settings say which servers there are; this says which of
// them are on.
import { z } from "zod";
import { request } from "../contract.ts";

/** Tools of one server that may be hidden; a server that has more to hide is better off with `tools` in its settings. */
export const maxHiddenTools = 200;
const server = z.string().min(1).max(64);
const tool = z.string().min(1).max(256);

const McpSwitchSchema = z.object({
  /** As the settings name it. */
  server: z.string(),
  /** Off: its program does not run, and the agent has none of its tools. */
  on: z.boolean(),
  /** Tools that the agent does not have, as the server calls them; sorted. */
  hidden: z.array(z.string()),
  /** How often it was told to start again. A tool-runner that has seen fewer of them starts it again. */
  restarts: z.number().int(),
  /** Who changed it last, and when (ISO 8601, UTC). */
  by: z.string(),
  at: z.string(),
});
export type McpSwitch = z.infer<typeof McpSwitchSchema>;

export const mcpSwitches = request({
  subject: "store.mcp.switches",
  server: "store",
  clients: ["tool-runner", "channel-gateway"],
  doc: "What people have switched of MCP servers, sorted by server. One that is not listed is as the settings have it: on, with all its tools.",
  input: z.object({}),
  output: z.object({ switches: z.array(McpSwitchSchema) }),
});

export const mcpSwitch = request({
  subject: "store.mcp.switch",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Switch an MCP server on or off, have it started again, or hide one of its tools and show it again; for the whole deployment, until it is changed back. Only a server that is on is started again (`off`). TOO_LARGE when too many tools would be hidden.",
  input: z.object({
    opId: z.uuid(),
    server,
    change: z.discriminatedUnion("do", [
      z.object({ do: z.enum(["on", "off", "restart"]) }),
      z.object({ do: z.enum(["hide", "show"]), tool }),
    ]),
    /** Who it was, for those who ask later. */
    by: z.string().min(1).max(300),
  }),
  output: z.object({
    /** `same`: it was so already. `off`: it cannot be started again. */
    outcome: z.enum(["done", "same", "off"]),
    switch: McpSwitchSchema,
  }),
});
export type McpChange = z.infer<typeof mcpSwitch.input>["change"];
