// The HTTP listener: access checks, rate limits and error responses. Every request, including WebSocket upgrades, passes the same
// checks in order: Host and Origin, token, rate limit, route. The routes are in other files.
import { randomUUID } from "node:crypto";
import rateLimit from "@fastify/rate-limit";
import { ConfigError } from "@parley/chassis";
import type { ApiScope } from "@parley/contracts";
import fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { sha256Hex } from "../channels/digest.ts";
import type { ApiAccess } from "../operations/operation.ts";
import { checkRouteScope, NamedTokens, ownerAccess, RefusalRecord } from "./api-access.ts";
import { crossOriginHeaders, hostAllowed, originAllowed, ownNames, tokenAccepted, tokenOf } from "./access.ts";
import { documentationFolder, documentationRoutes } from "./console/documentation.ts";
import { consoleFileRoutes } from "./console/files.ts";
import { ConsoleSessions, cookieHolder, signInRoutes } from "./console/sign-in.ts";
import type { HttpDeps } from "./deps.ts";
import { attachmentRoutes } from "./attachments.ts";
import { Endpoints } from "./endpoint.ts";
import { HttpError, openaiBody, plainBody, toHttpError } from "./errors.ts";
import { eventRoutes } from "./events.ts";
import { webhookRoutes } from "./webhooks.ts";
import { mcpRoutes } from "./mcp/routes.ts";
import { trackConnections } from "./idle-connections.ts";
import { messageRoutes } from "./messages.ts";
import { openaiRoutes } from "./openai.ts";
import { responseRoutes } from "./responses.ts";
import { openapiDocument } from "./openapi.ts";
import { OidcVerifier } from "./oidc.ts";
import { operationRoutes } from "./operations.ts";
import { platformRoutes } from "./platform-routes.ts";
import { simpleChatRoutes } from "./simple-chat.ts";
import { wsRoutes } from "./ws/routes.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The beginning of the hash of the caller's token, or of their identity at a provider; null without a valid token. */
    holder: string | null;
    /** The rights of the caller; null without a valid token. */
    access: ApiAccess | null;
  }
  interface FastifyContextConfig {
    /** Served without a token. */
    open?: boolean;
    /** What a token needs; null: the route checks for itself. Default: `read` for GET, else `admin`. */
    scope?: ApiScope | null;
  }
}

const bodyLimitBytes = 1024 * 1024;
/** Requests per minute from one address without a valid token. */
const strangerRatePerMinute = 120;
/** Requests per minute from one address to routes with their own authentication: signed hooks, platform webhooks. */
const openRatePerMinute = 6_000;
const closeSweepMs = 50;

export interface HttpListener {
  readonly port: number;
  readonly webSockets: number;
  /** Stops listening, closes WebSocket clients, and waits for the requests in progress. After `cutMs` it closes their connections. */
  close(cutMs: number): Promise<void>;
}

/** Registers the routes and listens. Throws ConfigError when the port is in use. */
export async function listenHttp(deps: HttpDeps): Promise<HttpListener> {
  const app = fastify({
    bodyLimit: bodyLimitBytes,
    // Limits how long a request may take to arrive, not its response.
    requestTimeout: 60_000,
    keepAliveTimeout: 75_000,
    // A request on an open connection is served during the drain; its response closes the connection.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 2_000 },
    exposeHeadRoutes: false,
    // A request for any other upgrade, such as curl's to HTTP/2, is handled as a plain request.
    http: { shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket" },
    logger: false,
    genReqId: () => `req_${randomUUID()}`,
  });
  app.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", request.id);
    done();
  });
  app.addHook("onResponse", (request, reply, done) => {
    const streamed = String(reply.getHeader("content-type") ?? "").startsWith("text/event-stream");
    // The pattern of the route: paths contain ids.
    deps.events.request(request.routeOptions.url ?? "none", reply.statusCode, streamed ? null : reply.elapsedTime);
    done();
  });
  gates(app, deps);
  const consoleSessions = new ConsoleSessions(deps);
  const namedTokens = new NamedTokens(deps);
  const { oidc: provider } = deps.settings;
  const oidc = provider === undefined ? undefined : new OidcVerifier(provider, deps.log);
  // After the checks of Host, Origin and token, and before the rate limit.
  app.addHook("onRequest", async (request) => {
    if (request.holder !== null) return;
    const token = bearerOf(request);
    if (token !== null) {
      const named = await namedTokens.find(token);
      const caller = named === null ? await oidc?.find(token) : undefined;
      request.access = named ?? caller?.access ?? null;
      if (request.access !== null) request.holder = sha256Hex(caller?.identity ?? token).slice(0, 16);
    } else if (request.headers.cookie !== undefined) {
      request.holder = await cookieHolder(request, consoleSessions);
      if (request.holder !== null) request.access = ownerAccess;
    }
  });
  errors(app, deps);
  await limits(app, deps);
  const endpoints = new Endpoints(app);
  openaiRoutes(endpoints, deps);
  responseRoutes(endpoints, deps);
  messageRoutes(endpoints, deps);
  eventRoutes(endpoints, deps);
  const webSockets = wsRoutes(app, endpoints, deps);
  webhookRoutes(app, endpoints, deps);
  platformRoutes(app, deps, (router) => errors(router, deps));
  operationRoutes(endpoints, deps);
  attachmentRoutes(app, endpoints, deps);
  simpleChatRoutes(endpoints, deps);
  mcpRoutes(app, endpoints, deps);
  signInRoutes(app, endpoints, deps, consoleSessions);
  consoleFileRoutes(app);
  documentationRoutes(app, documentationFolder());
  let document: ReturnType<typeof openapiDocument> | undefined;
  // Generated by the first request: it takes longer than the rest of the start.
  app.get("/openapi.json", { config: { open: true } }, async () => (document ??= openapiDocument(endpoints.docs)));

  const { closeIdle, closeAll } = trackConnections(app.server);
  const { host, port } = deps.http;
  try {
    await app.listen({ host, port });
  } catch (error) {
    throw listenError(error, host, port);
  }
  const address = app.server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    get webSockets() {
      return webSockets.clients;
    },
    close: async (cutMs) => {
      webSockets.close();
      // A client that neither sends nor reads would delay the end beyond the drain.
      const cut = setTimeout(closeAll, cutMs);
      // A connection that gets its last response during the close would stay open until its keep-alive timeout.
      const sweep = setInterval(closeIdle, closeSweepMs);
      await app.close();
      clearInterval(sweep);
      clearTimeout(cut);
    },
  };
}

/** Checks Host, Origin and token. A request without a token reaches the rate limit first, which slows down guessing. */
function gates(app: FastifyInstance, { http, ...deps }: HttpDeps): void {
  const refusals = new RefusalRecord(deps);
  const names = ownNames(http.host, http.allowedHosts);
  const hashes = http.tokenHashes.map((hash) => Buffer.from(hash, "hex"));
  app.decorateRequest("holder", null);
  app.decorateRequest("access", null);
  app.addHook("onRequest", (request, reply, done) => {
    const { host, origin } = request.headers;
    // PostgreSQL stores no NUL, so that no session, conversation or title has one.
    if (/%00/.test(request.url)) {
      done(new HttpError(400, "invalid_request", "the address contains a NUL character"));
      return;
    }
    if (!hostAllowed(host, names)) {
      done(
        new HttpError(
          403,
          "host_not_allowed",
          `Host ${host ?? "(none)"} is not allowed; add it to PARLEY_ALLOWED_HOSTS to allow it`,
        ),
      );
      return;
    }
    if (!originAllowed(origin, host, http.allowedOrigins)) {
      done(
        new HttpError(
          403,
          "origin_not_allowed",
          `Origin ${origin ?? ""} is not allowed; add it to PARLEY_ALLOWED_ORIGINS to allow it`,
        ),
      );
      return;
    }
    if (origin !== undefined && http.allowedOrigins.includes(origin)) {
      reply.headers(crossOriginHeaders(origin, request.headers["access-control-request-headers"]));
      if (request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined) {
        reply.code(204).send();
        return;
      }
    }
    const token = bearerOf(request);
    if (token !== null && tokenAccepted(token, hashes)) {
      request.holder = sha256Hex(token).slice(0, 16);
      request.access = ownerAccess;
    }
    done();
  });
  // After the rate limit, before the body is read.
  app.addHook("preParsing", (request, _reply, _payload, done) => {
    if (request.is404 || request.routeOptions.config.open === true) {
      done();
      return;
    }
    if (request.access !== null) {
      try {
        checkRouteScope(request);
        done();
      } catch (error) {
        refusals.refused(request, "scope.refused");
        done(error as Error);
      }
      return;
    }
    refusals.refused(request, "login.refused");
    done(
      new HttpError(401, "unauthorized", "a valid token is required: Authorization: Bearer <PARLEY_TOKEN>", {
        headers: { "www-authenticate": "Bearer" },
      }),
    );
  });
}

function bearerOf({ headers }: FastifyRequest): string | null {
  return tokenOf({ authorization: headers.authorization, protocols: headers["sec-websocket-protocol"] });
}

async function limits(app: FastifyInstance, { http }: HttpDeps): Promise<void> {
  if (http.ratePerMinute === 0) return;
  const keyOf = (request: FastifyRequest) => {
    if (request.holder !== null) return `token:${request.holder}`;
    return `${request.routeOptions.config.open === true ? "open" : "stranger"}:${request.ip}`;
  };
  await app.register(rateLimit, {
    timeWindow: 60_000,
    cache: 10_000,
    keyGenerator: keyOf,
    max: (_request, key) => {
      if (key.startsWith("token:")) return http.ratePerMinute;
      return key.startsWith("open:") ? openRatePerMinute : strangerRatePerMinute;
    },
    addHeadersOnExceeding: { "x-ratelimit-limit": false, "x-ratelimit-remaining": false, "x-ratelimit-reset": false },
    errorResponseBuilder: (_request, context) =>
      new HttpError(
        429,
        "rate_limited",
        `too many requests: the limit is ${context.max} per minute; try again in ${context.after}`,
      ),
  });
}

function errors(app: FastifyInstance, { log, events }: HttpDeps): void {
  const bodyOf = (request: FastifyRequest, error: HttpError) =>
    request.url.startsWith("/v1/") ? openaiBody(error) : plainBody(error);
  app.setErrorHandler((error, request, reply) => {
    const failure = toHttpError(error);
    events.refused(failure.code);
    const line = { err: error, route: request.routeOptions.url, requestId: request.id };
    if (failure.code === "internal") log.error(line, "request failed");
    else if (failure.status >= 500) log.warn(line, "request failed");
    else log.debug({ ...line, err: undefined, status: failure.status, code: failure.code }, "request refused");
    return reply.code(failure.status).headers(failure.headers).send(bodyOf(request, failure));
  });
  app.setNotFoundHandler((request, reply) => {
    const failure = new HttpError(
      404,
      "no_such_route",
      `no such route: ${request.method} ${request.url.split("?")[0] ?? ""}`,
    );
    return reply.code(404).send(bodyOf(request, failure));
  });
}

function listenError(error: unknown, host: string, port: number): unknown {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "EADDRINUSE":
      return new ConfigError(
        `port ${port} on ${host} is in use: stop the other process, or set PARLEY_HTTP_PORT to another port (0 = any)`,
      );
    case "EACCES":
      return new ConfigError(`no permission to open port ${port}: set PARLEY_HTTP_PORT to a port above 1023`);
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new ConfigError(`PARLEY_HTTP_HOST ${host} is not an address of this machine`);
    default:
      return error;
  }
}
