// Parley's OAuth client data for the authorization servers of MCP servers: its metadata document and its registration.
import type { McpServerSettings } from "./settings/mcp.ts";

export interface McpClient {
  /** Where the authorization server redirects the person to. */
  redirectUrl: string;
  /** URL of the client metadata document, which is the client id where the authorization server supports such documents; null: none. */
  metadataUrl: string | null;
  /** Client metadata according to RFC 7591. */
  metadata: {
    client_name: string;
    redirect_uris: string[];
    grant_types: string[];
    response_types: string[];
    token_endpoint_auth_method: string;
    scope?: string;
  };
}

/** `publicUrl`: the gateway's URL as browsers reach it. */
export function mcpClientOf(
  publicUrl: string,
  server: string,
  oauth: NonNullable<McpServerSettings["oauth"]>,
): McpClient {
  const base = `${publicUrl.replace(/\/+$/, "")}/oauth/mcp/${encodeURIComponent(server)}`;
  const redirectUrl = `${base}/callback`;
  const own = base.startsWith("https://") ? `${base}/client.json` : null;
  const { metadata_url: given, client_id: id, client_secret_env: secret, scopes } = oauth;
  return {
    redirectUrl,
    metadataUrl: given === "none" || id !== undefined ? null : (given ?? own),
    metadata: {
      client_name: "Parley",
      redirect_uris: [redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: secret === undefined ? "none" : "client_secret_basic",
      ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") }),
    },
  };
}
