// The Bot API over HTTP on a loopback port: bot token, method and parameters, injected faults, and long polls.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { z } from "zod";
import { keepAlive } from "../keep-alive.ts";
import type { Bot } from "./message.ts";
import { callMethod } from "./methods.ts";
import type { MethodResult } from "./results.ts";
import type { ApiCall, Fault, StoredUpdate, TelegramState } from "./state.ts";

const GetUpdates = z.object({
  offset: z.coerce.number().int().optional(),
  limit: z.coerce.number().int().min(1).max(100).default(100),
  timeout: z.coerce.number().int().min(0).max(50).default(0),
  allowed_updates: z
    .preprocess((value): unknown => (typeof value === "string" ? JSON.parse(value) : value), z.array(z.string()))
    .optional(),
});

export function createApiServer(state: TelegramState, token: string, bot: Bot): Server {
  const polls: { end: (result: MethodResult) => void }[] = [];

  const endPolls = (reason: string): void => {
    for (const poll of polls.splice(0)) poll.end({ status: 409, description: `Conflict: ${reason}` });
  };

  /** Waits for updates. A new long poll ends an older one with 409. */
  const getUpdates = async (parameters: Record<string, unknown>, response: ServerResponse): Promise<MethodResult> => {
    const given = GetUpdates.safeParse(parameters);
    if (!given.success) return { status: 400, description: "Bad Request: invalid parameters of getUpdates" };
    if (state.webhook !== null) {
      const problem =
        "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
      return { status: 409, description: `Conflict: ${problem}` };
    }
    const { offset, limit, timeout, allowed_updates: allowed } = given.data;
    if (allowed !== undefined) state.allowedUpdates = allowed;
    state.conflicts += polls.length;
    endPolls("terminated by other getUpdates request; make sure that only one bot instance is running");
    if (offset !== undefined) state.confirmBefore(offset);
    const ready = (): StoredUpdate[] => state.updates.slice(0, limit);
    if (ready().length > 0 || timeout === 0) return hand(ready());

    const { promise, resolve } = Promise.withResolvers<MethodResult>();
    const own = { end: resolve };
    polls.push(own);
    const stop = state.watch(() => {
      if (ready().length === 0) return;
      // Each update counts once as delivered.
      stop();
      resolve(hand(ready()));
    });
    const timer = setTimeout(() => resolve(hand([])), timeout * 1000);
    response.once("close", () => resolve(hand([])));
    state.changed();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      stop();
      const place = polls.indexOf(own);
      if (place !== -1) polls.splice(place, 1);
    }
  };

  const hand = (updates: StoredUpdate[]): MethodResult => {
    for (const { update_id: id } of updates) state.deliveries.set(id, (state.deliveries.get(id) ?? 0) + 1);
    return { status: 200, result: updates };
  };

  /** Faults with the name `file` apply to downloads. */
  const giveFile = async (givenToken: string, path: string, response: ServerResponse): Promise<undefined> => {
    state.calls.push({ method: "file", parameters: { path }, status: null, atMs: performance.now() });
    state.changed();
    const fault = state.takeFault("file");
    const early = fault === null ? null : faultBefore(fault, response);
    if (early === "cut") return undefined;
    if (fault?.kind === "hold") await fault.until;
    const content = givenToken === token ? state.files.get(path) : undefined;
    if (early !== null) answer(response, early);
    else if (content === undefined) answer(response, { status: 404, description: "Not Found" });
    else if (fault?.kind === "reset_after_commit") {
      response.writeHead(200, { "content-length": content.length });
      response.write(content.subarray(0, content.length / 2), () => response.socket?.resetAndDestroy());
    } else response.writeHead(200, { "content-length": content.length }).end(content);
    return undefined;
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    const [, fileToken, path = ""] = /^\/file\/bot([^/]*)\/(.+)$/.exec(url.pathname) ?? [];
    if (fileToken !== undefined) return giveFile(fileToken, path, response);
    const [, givenToken, method = ""] = /^\/bot([^/]*)\/(\w+)$/.exec(url.pathname) ?? [];
    if (givenToken === undefined) return answer(response, { status: 404, description: "Not Found" });
    if (givenToken !== token) return answer(response, { status: 401, description: "Unauthorized" });
    const parameters = { ...Object.fromEntries(url.searchParams), ...(await bodyOf(request)) };
    const call: ApiCall = { method, parameters, status: null, atMs: performance.now() };
    state.calls.push(call);
    state.changed();

    const limitedSeconds = state.limitFor(method);
    const fault =
      limitedSeconds > 0 ? ({ kind: "too_many", retryAfterSeconds: limitedSeconds } as const) : state.takeFault(method);
    const early = fault === null ? null : faultBefore(fault, response);
    if (early === "cut") return undefined;
    const result =
      early ??
      (method === "getUpdates" ? await getUpdates(parameters, response) : callMethod(method, parameters, state, bot)) ??
      ({ status: 404, description: "Not Found: method not found" } satisfies MethodResult);
    if (method === "setWebhook" && state.webhook !== null) endPolls("terminated by setWebhook request");
    if (fault?.kind === "hang_after_commit") return undefined;
    if (fault?.kind === "reset_after_commit") {
      response.socket?.resetAndDestroy();
      return undefined;
    }
    if (response.destroyed) return undefined;
    call.status = result.status;
    answer(response, result, fault?.kind === "bad_gateway");
    state.changed();
    return undefined;
  };

  return createServer(keepAlive, (request, response) => {
    serve(request, response).catch(() => answer(response, { status: 400, description: "Bad Request: broken request" }));
  });
}

function faultBefore(fault: Fault, response: ServerResponse): MethodResult | "cut" | null {
  switch (fault.kind) {
    case "too_many":
      return {
        status: 429,
        description: `Too Many Requests: retry after ${fault.retryAfterSeconds}`,
        parameters: { retry_after: fault.retryAfterSeconds },
      };
    case "server_error":
      return { status: 500, description: "Internal Server Error" };
    case "bad_gateway":
      return { status: 502, description: "" };
    case "refuse":
      return { status: fault.status, description: fault.description };
    case "reset_before_commit":
      response.socket?.resetAndDestroy();
      return "cut";
    default:
      return null;
  }
}

function answer(response: ServerResponse, result: MethodResult, asPage = false): void {
  if (response.headersSent) return;
  if (asPage) {
    response.writeHead(result.status, { "content-type": "text/html" }).end("<html><h1>502 Bad Gateway</h1></html>");
    return;
  }
  const body =
    "result" in result
      ? { ok: true, result: result.result }
      : {
          ok: false,
          error_code: result.status,
          description: result.description,
          ...(result.parameters === undefined ? {} : { parameters: result.parameters }),
        };
  response.writeHead(result.status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const type = request.headers["content-type"] ?? "";
  if (type.startsWith("multipart/form-data")) return formOf(body, type);
  const text = body.toString("utf8");
  if (text === "") return {};
  if (request.headers["content-type"]?.includes("json") === true) {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(text));
  }
  return Object.fromEntries(new URLSearchParams(text));
}

/** A multipart form, with files in the form that `methods.ts` expects. */
async function formOf(body: Buffer, type: string): Promise<Record<string, unknown>> {
  const form = await new Response(new Uint8Array(body), { headers: { "content-type": type } }).formData();
  const parameters: Record<string, unknown> = {};
  for (const [name, value] of form) {
    parameters[name] =
      typeof value === "string"
        ? value
        : { name: value.name, mediaType: value.type, content: Buffer.from(await value.arrayBuffer()) };
  }
  return parameters;
}
