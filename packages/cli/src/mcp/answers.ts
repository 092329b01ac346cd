// The gateway's API for MCP servers.

import { mcpLook, store } from "@parley/contracts";
import { z } from "zod";

const Switched = store.mcpSwitch.output.shape.switch;
const Server = mcpLook.output.shape.servers.element.extend({ switched: Switched.nullable() });

export const ServersAnswer = z.object({ servers: z.array(Server) });
export const ServerAnswer = z.object({ server: Server, tools: mcpLook.output.shape.tools });
export const SwitchedAnswer = z.object({
  server: z.string(),
  tool: z.string().nullable(),
  outcome: z.enum(["done", "same"]),
  switch: Switched,
});

export type ServerRow = z.infer<typeof Server>;
export type ToolRow = z.infer<typeof ServerAnswer>["tools"][number];
export type Switched = z.infer<typeof SwitchedAnswer>;
export type Order = "on" | "off" | "restart";

export function serverPath(server: string): string {
  return `/api/mcp/${encodeURIComponent(server)}`;
}
