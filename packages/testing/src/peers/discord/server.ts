// The REST API over HTTP on a loopback port: token, user agent, rate limits, faults, and downloads of attachments.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { z } from "zod";
import { keepAlive } from "../keep-alive.ts";
import { Buckets, type RateLimits } from "./buckets.ts";
import { apiError, type ApiResult } from "./errors.ts";
import { callRoute, template, type RouteContext } from "./routes.ts";
import type { DiscordCall, DiscordFault, DiscordState } from "./state.ts";

const apiRoot = "/api/v10/";
const filesPath = /^\/attachments\/\d+\/(\d+)\/[^/]+$/;

export function createRestServer(
  state: DiscordState,
  token: string,
  limits: RateLimits,
  context: () => RouteContext,
  now?: () => number,
): Server {
  const buckets = new Buckets(limits, now);

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    const fileId = filesPath.exec(url.pathname)?.[1];
    if (fileId !== undefined) return giveFile(fileId, url, response);
    if (!url.pathname.startsWith(apiRoot)) return answer(response, apiError(404, 0, "404: Not Found"));
    const path = url.pathname.slice(apiRoot.length).split("/").map(decodeURIComponent);
    const method = request.method ?? "GET";
    const route = `${method} /${path.map(routeSegment).join("/")}`;
    const call: DiscordCall = { route, path: `/${path.join("/")}`, body: await bodyOf(request), status: null };
    state.calls.push(call);
    state.changed();

    // Requests without a proper user agent are blocked in front of the API.
    if (!/^DiscordBot \([^ )]+[ ,][^)]+\)/.test(request.headers["user-agent"] ?? "")) {
      response.writeHead(403, { "content-type": "text/html" }).end("<html>error code: 1010</html>");
      return;
    }
    const open = path[0] === "interactions" || path[0] === "webhooks";
    if (!open && request.headers.authorization !== `Bot ${token}`) {
      call.status = 401;
      return answer(response, { status: 401, body: { message: "401: Unauthorized", code: 0 } });
    }
    const fault = state.takeFault(route);
    const early = fault === null ? null : faultBefore(fault, response);
    if (early === "cut") return;
    // Interactions have no limits of their own.
    const passage = open ? null : buckets.pass(route, `${route} ${path[1] ?? ""}`);
    const headers = early?.headers ?? passage?.headers ?? {};
    const result =
      early ??
      (passage?.limited === true ? tooMany(passage.retryAfterMs / 1000, passage.global) : null) ??
      callRoute(context(), { method, path, query: url.searchParams, body: call.body }) ??
      apiError(404, 0, "404: Not Found");
    state.changed();
    if (fault?.kind === "hang_after_commit") return;
    if (fault?.kind === "reset_after_commit") {
      response.socket?.resetAndDestroy();
      return;
    }
    if (response.destroyed) return;
    call.status = result.status;
    answer(response, result, headers, fault?.kind === "bad_gateway");
    state.changed();
  };

  const giveFile = (fileId: string, url: URL, response: ServerResponse): void => {
    state.calls.push({ route: "GET file", path: url.pathname, body: {}, status: null });
    state.changed();
    const fault = state.takeFault("GET file");
    const early = fault === null ? null : faultBefore(fault, response);
    if (early === "cut") return;
    const content = url.searchParams.has("hm") ? state.files.get(fileId)?.content : undefined;
    if (early !== null) answer(response, early);
    else if (content === undefined) answer(response, apiError(404, 0, "This content is no longer available."));
    else response.writeHead(200, { "content-length": content.length }).end(content);
  };

  return createServer(keepAlive, (request, response) => {
    serve(request, response).catch(() => answer(response, apiError(400, 0, "400: Bad Request")));
  });
}

/** A path segment for a route: ids and tokens are left out. */
function routeSegment(segment: string): string {
  return /^interaction-|^\p{Extended_Pictographic}/u.test(segment) ? "{}" : template(segment);
}

function tooMany(retryAfterSeconds: number, global: boolean): ApiResult {
  return { status: 429, body: { message: "You are being rate limited.", retry_after: retryAfterSeconds, global } };
}

function faultBefore(
  fault: DiscordFault,
  response: ServerResponse,
): (ApiResult & { headers?: Record<string, string> }) | "cut" | null {
  switch (fault.kind) {
    case "too_many": {
      const headers = {
        "retry-after": String(Math.ceil(fault.retryAfterSeconds)),
        "x-ratelimit-scope": fault.global === true ? "global" : "user",
        ...(fault.global === true ? { "x-ratelimit-global": "true" } : {}),
      };
      return { ...tooMany(fault.retryAfterSeconds, fault.global === true), headers };
    }
    case "server_error":
      return { status: 500, body: { message: "500: Internal Server Error", code: 0 } };
    case "bad_gateway":
      return { status: 502 };
    case "refuse":
      return apiError(fault.status, fault.code, fault.message);
    case "reset_before_commit":
      response.socket?.resetAndDestroy();
      return "cut";
    default:
      return null;
  }
}

function answer(
  response: ServerResponse,
  { status, body }: ApiResult,
  headers: Record<string, string> = {},
  asPage = false,
): void {
  if (response.headersSent) return;
  if (asPage) {
    response.writeHead(status, { "content-type": "text/html" }).end("<html><h1>502 Bad Gateway</h1></html>");
    return;
  }
  if (body === undefined) response.writeHead(status, headers).end();
  else response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

const Fields = z.record(z.string(), z.unknown());

/** The JSON body; a list is in the field `list`. Files of a form are fields of the same names. */
async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const type = request.headers["content-type"] ?? "";
  if (body.length === 0) return {};
  if (!type.startsWith("multipart/form-data")) {
    const json = parseBody(body.toString("utf8"));
    return Array.isArray(json) ? { list: json } : Fields.parse(json);
  }
  const form = await new Response(new Uint8Array(body), { headers: { "content-type": type } }).formData();
  let fields: Record<string, unknown> = {};
  for (const [name, value] of form) {
    if (typeof value !== "string")
      fields[name] = { name: value.name, mediaType: value.type, content: Buffer.from(await value.arrayBuffer()) };
    else
      fields =
        name === "payload_json" ? { ...fields, ...Fields.parse(parseBody(value)) } : { ...fields, [name]: value };
  }
  return fields;
}

/** Ids may be numbers, as some clients send them: those that JavaScript cannot represent become texts. */
function parseBody(text: string): unknown {
  const exact = (_: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^\d+$/.test(context?.source ?? "")
      ? context?.source
      : value;
  return JSON.parse(text, exact);
}
