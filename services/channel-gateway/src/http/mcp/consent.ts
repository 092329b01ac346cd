// The OAuth redirect target for MCP servers that the agent uses: it passes the code from a person's browser to a tool-runner, sealed to the key
// in the link. The unguessable state is the only authentication of the caller.
import {
  mcpAuthorize,
  mcpClientOf,
  publicKeyInState,
  sealedCodeContext,
  WireError,
  type InputOf,
} from "@parley/contracts";
import { seal } from "@parley/kit";
import { z } from "zod";
import type { HttpDeps } from "../deps.ts";
import type { Endpoints } from "../endpoint.ts";
import { HttpError } from "../errors.ts";

const timeoutMs = 8_000;

const Query = z.object({
  state: z.string().min(1).max(512),
  code: z.string().max(4_096).optional(),
  error: z.string().max(500).optional(),
  error_description: z.string().max(1_500).optional(),
  iss: z.string().max(2_000).optional(),
});

const Metadata = z.object({
  client_id: z.string(),
  client_name: z.string(),
  redirect_uris: z.array(z.string()),
  grant_types: z.array(z.string()),
  response_types: z.array(z.string()),
  token_endpoint_auth_method: z.string(),
  scope: z.string().optional(),
});

export function consentRoutes(endpoints: Endpoints, { bus, log, settings }: HttpDeps): void {
  endpoints.add(
    {
      method: "GET",
      url: "/oauth/mcp/:server/client.json",
      summary: "Parley's OAuth client metadata document for an MCP server",
      open: true,
      params: z.object({ server: z.string().min(1).max(64) }),
      answers: { 200: { description: "The document; its URL is the client id", schema: Metadata } },
    },
    async ({ params: { server }, reply }) => {
      const oauth = Object.hasOwn(settings.mcp.servers, server) ? settings.mcp.servers[server]?.oauth : undefined;
      const client = oauth === undefined ? undefined : mcpClientOf(settings.mcp.public_url, server, oauth);
      if (client === undefined || client.metadataUrl === null) {
        throw new HttpError(404, "not_found", `there is no client metadata document for "${server}"`);
      }
      reply.header("cache-control", "public, max-age=3600");
      return { client_id: client.metadataUrl, ...client.metadata };
    },
  );

  endpoints.add(
    {
      method: "GET",
      url: "/oauth/mcp/:server/callback",
      summary: "The OAuth redirect target after a person has authorized an MCP server",
      open: true,
      params: z.object({ server: z.string().min(1).max(64) }),
      query: Query,
      answers: { 200: { description: "A page with the result", contentType: "text/html" } },
    },
    async ({ params, query, reply }) => {
      const link = { server: params.server, state: query.state };
      const publicKey = publicKeyInState(query.state);
      const sealedCode =
        query.code === undefined || publicKey === undefined
          ? null
          : seal(query.code, publicKey, sealedCodeContext(link));
      const { outcome, message } = await exchange({
        ...link,
        sealedCode,
        error: query.error === undefined ? null : [query.error, query.error_description].filter(Boolean).join(": "),
        issuer: query.iss ?? null,
      });
      reply.code(outcome === "done" ? 200 : outcome === "unavailable" ? 503 : 400).headers({
        "content-type": "text/html; charset=utf-8",
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "content-security-policy": "default-src 'none'",
      });
      return page(message);
    },
  );

  async function exchange(input: InputOf<typeof mcpAuthorize>): Promise<{ outcome: string; message: string }> {
    try {
      return await bus.request(mcpAuthorize, input, { timeoutMs, attemptMs: timeoutMs });
    } catch (error) {
      if (!WireError.is(error, "UNAVAILABLE", "TIMEOUT")) throw error;
      log.warn({ err: error, mcp: input.server }, "authorization code not delivered: no tool-runner responded");
      return {
        outcome: "unavailable",
        message: "The authorization cannot be completed now: no tool-runner is responding. Request a new link later.",
      };
    }
  }
}

function page(message: string): string {
  const safe = message
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
  return `<!doctype html><meta charset="utf-8"><title>Parley</title><p>${safe}</p><p>You can close this page.</p>\n`;
}
