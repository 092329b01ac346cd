// Parley as an MCP server: POST /mcp, streamable HTTP without sessions, for all supported protocol revisions. The listener checks
// Host, Origin, token and rate, as for every other route.
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { accessOf } from "../api-access.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoints } from "../endpoint.ts";
import { HttpError } from "../errors.ts";
import { consentRoutes } from "./consent.ts";

export function mcpRoutes(app: FastifyInstance, endpoints: Endpoints, deps: HttpDeps): void {
  endpoints.document({
    method: "POST",
    url: "/mcp",
    summary: "Parley as an MCP server (streamable HTTP, no sessions)",
    description:
      "Tools: send_message, list_sessions, read_session, approvals_list, approval_get, approval_decide. Protocol revisions: 2026-07-28, and all up to 2025-11-25.",
    body: z.looseObject({ jsonrpc: z.literal("2.0"), method: z.string() }),
    answers: {
      200: { description: "JSON-RPC, as JSON or as server-sent events", schema: z.looseObject({}) },
      405: { description: "method_not_allowed: there are no sessions to stream or to end" },
    },
  });
  // Each tool checks its scope.
  app.post("/mcp", { config: { scope: null } }, async (request, reply) => {
    const signal = deps.waiters.signalFor(reply);
    // Loaded with the first request: the library takes 4 MiB, and most clusters have no MCP clients.
    const [{ createMcpHandler }, { parleyServer }] = await Promise.all([
      import("@modelcontextprotocol/server"),
      import("./tools.ts"),
    ]);
    const handler = createMcpHandler(() => parleyServer(deps, accessOf(request), signal), {
      onerror: (error) => deps.log.debug({ err: error }, "mcp"),
    });
    reply.raw.once("close", () => void handler.close());
    return reply.send(await handler.fetch(webRequest(request, signal), { parsedBody: request.body }));
  });
  app.route({
    method: ["GET", "DELETE"],
    url: "/mcp",
    config: { scope: null },
    handler: () => {
      throw new HttpError(405, "method_not_allowed", "only POST is allowed: this server has no sessions", {
        headers: { allow: "POST" },
      });
    },
  });
  consentRoutes(endpoints, deps);
}

/** The body is already parsed and is passed separately. */
function webRequest(request: FastifyRequest, signal: AbortSignal): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    // The listener has checked the token; it is not passed on.
    if (value !== undefined && name !== "authorization") headers.set(name, String(value));
  }
  return new Request(`http://${request.headers.host ?? "localhost"}${request.url}`, {
    method: "POST",
    headers,
    signal,
  });
}
