// MCP servers in the native API: their states and tools, and switching them. Every holder of the API token is the owner.
import { mcpLook, store } from "@parley/contracts";
import { z } from "zod";
import { getServer, listServers, switchServer } from "../operations/mcp-service.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { keyHeader, operationId } from "./operation-ref.ts";

const Switched = store.mcpSwitch.output.shape.switch;
const ServerView = mcpLook.output.shape.servers.element.extend({
  /** Run-time switches of the server; null: never switched. */
  switched: Switched.nullable(),
});
const ServerParams = z.object({ server: z.string().min(1).max(64) });

export function mcpServerRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  endpoints.add(
    {
      method: "GET",
      url: "/api/mcp",
      summary: "The MCP servers and their states, as reported by a tool-runner",
      answers: { 200: { description: "Sorted by name", schema: z.object({ servers: z.array(ServerView) }) } },
    },
    async () => ({ servers: await listServers(deps) }),
  );

  endpoints.add(
    {
      method: "GET",
      url: "/api/mcp/:server",
      summary: "One MCP server and its tools",
      params: ServerParams,
      answers: {
        200: {
          description: "The server and its last listed tools, including hidden ones",
          schema: z.object({ server: ServerView, tools: mcpLook.output.shape.tools }),
        },
        409: { description: "conflict: the server is off in the settings" },
      },
    },
    ({ params }) => getServer(deps, params.server),
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/mcp/:server",
      summary: "Switch an MCP server on or off, restart it, or hide one of its tools",
      description:
        "Applies to every tool-runner until it is changed back. A conversation keeps its initial tool list; a call of a tool that is gone returns the reason.",
      params: ServerParams,
      headers: keyHeader,
      body: z.strictObject({
        action: z.enum(["on", "off", "restart"]),
        /** The tool's name at the server or in the catalog; omitted: the whole server. */
        tool: z.string().min(1).max(256).optional(),
      }),
      answers: {
        200: {
          description: "The current state; `same`: nothing changed",
          schema: z.object({
            server: z.string(),
            tool: z.string().nullable(),
            outcome: z.enum(["done", "same"]),
            switch: Switched,
          }),
        },
        409: {
          description: "conflict: the server is off in the settings, or a restart was requested while it is off",
        },
      },
    },
    ({ params: { server }, body: { action: to, tool }, request }) => {
      const opId = operationId(request, `mcp:${server}:${to}:${tool ?? ""}`);
      return switchServer(deps, { to, server, tool }, { by: "owner (API)", opId });
    },
  );
}
