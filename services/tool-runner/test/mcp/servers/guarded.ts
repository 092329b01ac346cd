// An in-process MCP server over HTTP with an authorization server: registration, immediate consent, code with PKCE,
// refresh. Its access tokens can be revoked.
import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

export interface Guarded {
  /** URL of the MCP endpoint. */
  url: string;
  /** Grants by kind, in order. */
  granted: string[];
  /** Revokes all issued access tokens; with `all` also the refresh tokens. */
  revoke(all: boolean): void;
  stop(): Promise<void>;
}

export async function startGuarded(): Promise<Guarded> {
  const codes = new Map<string, string>();
  const good = new Set<string>();
  const refreshable = new Set<string>();
  const granted: string[] = [];
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "guarded", version: "1" });
    const about = { description: "Read the treasure.", inputSchema: z.object({}) };
    server.registerTool("secret", about, () => ({ content: [{ type: "text", text: "the treasure" }] }));
    return server;
  });
  let origin = "";

  const tokens = (kind: string) => {
    const [access, refresh] = [randomUUID(), randomUUID()];
    good.add(access);
    refreshable.add(refresh);
    granted.push(kind);
    return { access_token: access, refresh_token: refresh, token_type: "Bearer", expires_in: 3_600 };
  };
  const token = (form: URLSearchParams): object | undefined => {
    if (form.get("grant_type") === "refresh_token") {
      return refreshable.delete(form.get("refresh_token") ?? "") ? tokens("refresh_token") : undefined;
    }
    const code = form.get("code") ?? "";
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    const expected = codes.get(code);
    codes.delete(code);
    return expected === challenge ? tokens("authorization_code") : undefined;
  };
  const json = (response: ServerResponse, status: number, value: object) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));

  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", origin);
    const body = Buffer.concat(await request.toArray()).toString("utf8");
    if (pathname.startsWith("/.well-known/oauth-protected-resource")) {
      json(response, 200, { resource: `${origin}/mcp`, authorization_servers: [origin] });
    } else if (pathname.startsWith("/.well-known/oauth-authorization-server")) {
      json(response, 200, {
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        registration_endpoint: `${origin}/register`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["none"],
      });
    } else if (pathname === "/register") {
      json(response, 201, { ...z.looseObject({}).parse(JSON.parse(body)), client_id: randomUUID() });
    } else if (pathname === "/authorize") {
      const code = randomUUID();
      codes.set(code, searchParams.get("code_challenge") ?? "");
      const back = new URL(searchParams.get("redirect_uri") ?? "");
      back.searchParams.set("code", code);
      back.searchParams.set("state", searchParams.get("state") ?? "");
      response.writeHead(302, { location: back.href }).end();
    } else if (pathname === "/token") {
      const given = token(new URLSearchParams(body));
      json(response, given === undefined ? 400 : 200, given ?? { error: "invalid_grant" });
    } else if (!good.has(request.headers.authorization?.replace("Bearer ", "") ?? "")) {
      const challenge = `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource"`;
      response.writeHead(401, { "www-authenticate": challenge }).end();
    } else {
      const headers = new Headers(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
      const method = request.method ?? "GET";
      const answer = await handler.fetch(
        new Request(`${origin}/mcp`, { method, headers, ...(method === "POST" ? { body } : {}) }),
      );
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      for await (const chunk of answer.body ?? []) response.write(chunk);
      response.end();
    }
  };

  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the server has no port");
  origin = `http://127.0.0.1:${address.port}`;
  return {
    url: `${origin}/mcp`,
    granted,
    revoke(all) {
      good.clear();
      if (all) refreshable.clear();
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await handler.close();
    },
  };
}
