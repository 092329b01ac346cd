// The fake's HTTP side: the Web API with its tokens, rates and injected faults, uploads, downloads, and connections of socket mode.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { keepAlive } from "../keep-alive.ts";
import { methods, scopes, tiers } from "./methods.ts";
import { refused, type MethodResult } from "./results.ts";
import type { Sockets } from "./sockets.ts";
import type { PostRate, SlackCall, SlackFault, SlackState } from "./state.ts";

export interface Tokens {
  bot: string;
  app: string;
}

/** Serves the state; `postRate` limits `chat.postMessage` in each conversation. */
export function createApiServer(state: SlackState, sockets: Sockets, tokens: Tokens, postRate: PostRate): Server {
  const rootOf = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const call = (method: string, token: string | null, parameters: Record<string, unknown>): MethodResult => {
    if (token === null) return refused("not_authed");
    if ((token !== tokens.bot && token !== tokens.app) || state.revoked.has(token)) return refused("invalid_auth");
    const needsApp = method === "apps.connections.open";
    if (needsApp !== (token === tokens.app)) return refused("not_allowed_token_type");
    if (needsApp) {
      const ticket = sockets.newTicket();
      return {
        ok: true,
        body: { url: `${rootOf().replace("http", "ws")}/link/?ticket=${ticket}&app_id=${state.appId}` },
      };
    }
    const run = methods[method];
    if (run === undefined) return refused("unknown_method");
    const needed = scopes[method] ?? "";
    if (state.missingScopes.has(needed)) return { ok: false, error: "missing_scope", needed };
    const rate = method === "chat.postMessage" ? postRate : tiers[method];
    const { channel } = parameters;
    const key = method === "chat.postMessage" && typeof channel === "string" ? `${method}:${channel}` : method;
    const waitSeconds = rate === undefined ? null : state.takeRate(key, rate);
    if (waitSeconds !== null) return { ok: false, error: "ratelimited", waitSeconds };
    const result = run(parameters, state);
    if (!result.ok || typeof result.body["upload_url"] !== "string") return result;
    return { ok: true, body: { ...result.body, upload_url: `${rootOf()}${result.body["upload_url"]}` } };
  };

  const api = async (method: string, request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const parameters = await parametersOf(request);
    const token = bearerOf(request) ?? (typeof parameters["token"] === "string" ? parameters["token"] : null);
    const { token: _, ...shown } = parameters;
    const entry: SlackCall = { method, parameters: shown, result: null };
    state.calls.push(entry);
    state.changed();
    const fault = state.takeFault(method);
    const early = fault === null ? null : faultBefore(fault, response);
    if (early === "cut") return;
    const result = early ?? call(method, token, parameters);
    if (fault?.kind === "hang_after_commit") return;
    if (fault?.kind === "reset_after_commit") {
      response.socket?.resetAndDestroy();
      return;
    }
    if (fault?.kind === "server_error" || fault?.kind === "bad_gateway") {
      response
        .writeHead(fault.kind === "server_error" ? 500 : 502, { "content-type": "text/html" })
        .end("<h1>Error</h1>");
      return;
    }
    entry.result = result.ok ? "ok" : result.error;
    answer(response, result);
    state.changed();
  };

  const upload = async (id: string, request: IncomingMessage, response: ServerResponse): Promise<void> => {
    state.calls.push({ method: "upload", parameters: { id }, result: null });
    const fault = state.takeFault("upload");
    if (fault !== null) {
      response.writeHead(500).end();
      return;
    }
    const content = await uploadedOf(request);
    const expected = state.uploads.get(id);
    if (expected === undefined || expected.length !== content.length) {
      response.writeHead(400).end("wrong length");
      return;
    }
    expected.content = content;
    response.writeHead(200).end(`OK - ${content.length}`);
  };

  /** Without the bot's token the real service redirects to its sign-in page. */
  const download = (id: string, request: IncomingMessage, response: ServerResponse): void => {
    state.calls.push({ method: "download", parameters: { id }, result: null });
    const fault = state.takeFault("download");
    const file = state.files.get(id);
    if (bearerOf(request) !== tokens.bot) response.writeHead(302, { location: "/signin" }).end();
    else if (file === undefined) response.writeHead(404).end();
    else if (fault?.kind === "reset_after_commit") {
      response.writeHead(200, { "content-length": file.content.length });
      response.write(file.content.subarray(0, file.content.length / 2), () => response.socket?.resetAndDestroy());
    } else if (fault !== null) response.writeHead(500).end();
    else response.writeHead(200, { "content-length": file.content.length }).end(file.content);
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname } = new URL(request.url ?? "/", "http://127.0.0.1");
    const [, kind, name = ""] = /^\/(api|upload|files-pri)\/([\w.]+)/.exec(pathname) ?? [];
    if (kind === "api") await api(name, request, response);
    else if (kind === "upload") await upload(name, request, response);
    else if (kind === "files-pri") download(name, request, response);
    else response.writeHead(404).end();
  };

  const server = createServer(keepAlive, (request, response) => {
    serve(request, response).catch(() => answer(response, refused("invalid_form_data")));
  });
  server.on("upgrade", (request, socket, head) => sockets.upgrade(request, socket, head));
  return server;
}

function bearerOf(request: IncomingMessage): string | null {
  return /^Bearer (.+)$/i.exec(request.headers.authorization ?? "")?.[1] ?? null;
}

function faultBefore(fault: SlackFault, response: ServerResponse): MethodResult | "cut" | null {
  if (fault.kind === "rate_limited") return { ok: false, error: "ratelimited", waitSeconds: fault.retryAfterSeconds };
  if (fault.kind === "refuse") return refused(fault.error);
  if (fault.kind === "server_error" || fault.kind === "bad_gateway") return refused("internal_error");
  if (fault.kind !== "reset_before_commit") return null;
  response.socket?.resetAndDestroy();
  return "cut";
}

function answer(response: ServerResponse, result: MethodResult): void {
  if (response.headersSent || response.destroyed) return;
  const headers: Record<string, string> = { "content-type": "application/json; charset=utf-8" };
  if (!result.ok && result.waitSeconds !== undefined) headers["retry-after"] = String(result.waitSeconds);
  const status = !result.ok && result.waitSeconds !== undefined ? 429 : 200;
  const needed = result.ok || result.needed === undefined ? {} : { needed: result.needed, provided: "identify" };
  const body = result.ok ? { ok: true, ...result.body } : { ok: false, error: result.error, ...needed };
  response.writeHead(status, headers).end(JSON.stringify(body));
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function parametersOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const text = (await bodyOf(request)).toString("utf8");
  if (text === "") return {};
  if (request.headers["content-type"]?.includes("json") === true) return JSON.parse(text) as Record<string, unknown>;
  return Object.fromEntries(new URLSearchParams(text));
}

/** The bytes of an upload: the body, or the file of a form. */
async function uploadedOf(request: IncomingMessage): Promise<Buffer> {
  const body = await bodyOf(request);
  const type = request.headers["content-type"] ?? "";
  if (!type.startsWith("multipart/form-data")) return body;
  const form = await new Response(new Uint8Array(body), { headers: { "content-type": type } }).formData();
  for (const [, value] of form) if (typeof value !== "string") return Buffer.from(await value.arrayBuffer());
  return Buffer.alloc(0);
}
