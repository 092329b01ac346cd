// MCP servers in the native API: how they are, which tools they have, switching them. The holder of the token is the owner.
import { mcpLook, store } from "@parley/contracts";
import { z } from "zod";
import { lookAtServer, lookAtServers, switchServer } from "../mcp-acts.ts";
import { approvedBy } from "./approvals.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { keyHeader, operationId } from "./operation-ref.ts";

const Switched = store.mcpSwitch.output.shape.switch;
const ServerView = mcpLook.output.shape.servers.element.extend({
  /** What people have switched of it; null: nothing, ever. */
  switched: Switched.nullable(),
});
const ServerParams = z.object({ server: z.string().min(1).max(64) });

export function mcpServerRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  endpoints.add(
    {
      method: "GET",
      url: "/api/mcp",
      summary: "The MCP servers and how they are, as a tool-runner sees them now",
      answers: { 200: { description: "Sorted by name", schema: z.object({ servers: z.array(ServerView) }) } },
    },
    async () => ({ servers: await lookAtServers(deps) }),
  );

  endpoints.add(
    {
      method: "GET",
      url: "/api/mcp/:server",
      summary: "One MCP server and its tools",
      params: ServerParams,
      answers: {
        200: {
          description: "The server, and the tools it has listed last, those included that people have hidden",
          schema: z.object({ server: ServerView, tools: mcpLook.output.shape.tools }),
        },
        409: { description: "conflict: the server is off in the settings" },
      },
    },
    ({ params }) => lookAtServer(deps, params.server),
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/mcp/:server",
      summary: "Switch an MCP server on or off, start it again, or hide a tool of it",
      description:
        "It holds for every tool-runner, until it is changed back. A conversation keeps the list of tools it began with; a call of one that is gone is answered with why.",
      params: ServerParams,
      headers: keyHeader,
      body: z.strictObject({
        action: z.enum(["on", "off", "restart"]),
        /** As the server or the agent calls it; left out: the whole server. */
        tool: z.string().min(1).max(256).optional(),
      }),
      answers: {
        200: {
          description: "What holds now; `same`: it was so already",
          schema: z.object({
            server: z.string(),
            tool: z.string().nullable(),
            outcome: z.enum(["done", "same"]),
            switch: Switched,
          }),
        },
        409: {
          description: "conflict: the server is off in the settings, or cannot be started again because it is off",
        },
      },
    },
    ({ params: { server }, body: { action: to, tool }, request }) => {
      const opId = operationId(request, `mcp:${server}:${to}:${tool ?? ""}`);
      return switchServer(deps, { to, server, tool }, { by: approvedBy, opId });
    },
  );
}
