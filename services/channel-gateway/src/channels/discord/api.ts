// Calls of the REST API v10 over fetch, with parsed responses. It reports the response, or how far a request got; callers decide what that
// means for a message. The library @discordjs/rest is not used: it waits for rate limits and repeats calls by itself, within one process,
// while the host does both for all replicas.
import type { z } from "zod";
import type { OutboundFile } from "../channel.ts";
import { parseJson, requestFailure } from "../transport.ts";
import { ApiError, RateLimited } from "./schema.ts";

/** The result of a call. `unreached`: certainly not executed. `lost`: sent, but no readable response arrived. */
export type Answer<Result> =
  | { kind: "ok"; result: Result }
  | { kind: "limited"; afterMs: number; global: boolean }
  | { kind: "refused"; status: number; code: number; reason: string }
  | { kind: "unreached"; reason: string }
  | { kind: "lost"; reason: string };

interface Request {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below the API's root, for example `/users/@me`. */
  path: string;
  body?: unknown;
  files?: readonly OutboundFile[];
}

export type Call = <Result>(
  request: Request,
  result: z.ZodType<Result>,
  signal: AbortSignal,
) => Promise<Answer<Result>>;

export interface ApiOptions {
  apiRoot: string;
  token: string;
  fetch: () => typeof fetch;
}

/** Discord blocks clients without a user agent of this form. */
const userAgent = "DiscordBot (Parley, 1.0)";
/** Exhausted buckets that are remembered; more are pruned. */
const maxBuckets = 1_000;

export function createCall({ apiRoot, token, fetch }: ApiOptions): Call {
  const root = apiRoot.replace(/\/+$/, "");
  /** When a call of a route may be made again, by route; `global` for all. */
  const openAt = new Map<string, number>();
  const waitMs = (route: string): number =>
    Math.max(openAt.get(route) ?? 0, openAt.get("global") ?? 0) - performance.now();
  const close = (route: string, forMs: number): void => {
    if (openAt.size >= maxBuckets) {
      for (const [key, at] of openAt) if (at <= performance.now()) openAt.delete(key);
    }
    openAt.set(route, performance.now() + forMs);
  };

  return async (request, result, signal) => {
    if (signal.aborted) return { kind: "unreached", reason: "cancelled before it was sent" };
    const route = routeOf(request);
    // Responses to interactions have no part in the limits of the bot.
    const isResponse = /^\/(?:interactions|webhooks)\//.test(request.path);
    const afterMs = isResponse ? 0 : waitMs(route);
    // Calls that Discord would refuse count towards a ban of the address (10,000 in 10 minutes).
    if (afterMs > 0) return { kind: "limited", afterMs: Math.ceil(afterMs), global: waitMs("global") > 0 };
    let response: Response;
    let body: string;
    try {
      response = await fetch()(`${root}${request.path}`, {
        method: request.method,
        redirect: "manual",
        signal,
        ...(await contentOf(request, { authorization: `Bot ${token}`, "user-agent": userAgent })),
      });
      body = await response.text();
    } catch (error) {
      return requestFailure(error, signal);
    }
    const { status, headers } = response;
    const json = parseJson(body);
    if (status === 429) {
      const limited = RateLimited.safeParse(json).data;
      const seconds = limited?.retry_after ?? Number(headers.get("retry-after") ?? "1");
      const global = limited?.global === true || headers.get("x-ratelimit-scope") === "global";
      const retryMs = Math.ceil((Number.isFinite(seconds) ? seconds : 1) * 1_000);
      if (!isResponse) close(global ? "global" : route, retryMs);
      return { kind: "limited", afterMs: retryMs, global };
    }
    const resetSeconds = Number(headers.get("x-ratelimit-reset-after") ?? "NaN");
    if (headers.get("x-ratelimit-remaining") === "0" && resetSeconds > 0) close(route, resetSeconds * 1_000);
    if (status < 200 || status >= 300) {
      const { code, message, errors } = ApiError.safeParse(json).data ?? { code: 0, message: `HTTP ${status}` };
      const details = errors === undefined ? "" : `: ${JSON.stringify(errors).slice(0, 300)}`;
      const reason = `${message} (${code === 0 ? status : code})${details}`.replaceAll(token, "[secret]");
      return { kind: "refused", status, code, reason };
    }
    const parsed = result.safeParse(json);
    return parsed.success
      ? { kind: "ok", result: parsed.data }
      : { kind: "lost", reason: `unreadable response to ${request.method} ${route}` };
  };
}

/** Limits apply to a route in one channel: other ids do not count. */
function routeOf({ method, path }: Request): string {
  const [, root = "", id = "", ...rest] = path.replace(/\?.*/, "").split("/");
  return [method, root, id, ...rest.map((segment) => (/^\d+$|%/.test(segment) ? "{}" : segment))].join("/");
}

/** A JSON body, or with files a form whose field `payload_json` it is. */
async function contentOf({ body, files = [] }: Request, headers: Record<string, string>) {
  if (files.length === 0) {
    if (body === undefined) return { headers };
    return { headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) };
  }
  const form = new FormData();
  form.append("payload_json", JSON.stringify(body));
  for (const [index, { name, mediaType, content }] of files.entries()) {
    form.append(`files[${index}]`, new Blob([Uint8Array.from(content)], { type: mediaType }), name);
  }
  // Encoded first: a form that fetch still reads during an abort causes an uncatchable rejection.
  const encoded = new Response(form);
  const type = encoded.headers.get("content-type") ?? "";
  return { headers: { ...headers, "content-type": type }, body: await encoded.arrayBuffer() };
}
