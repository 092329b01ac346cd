// Calls of the REST API v10. The library @discordjs/rest is not used: it waits for rate limits and repeats calls by itself, within one
// process, while the host does both for all replicas.
import type { z } from "zod";
import type { OutboundFile } from "../channel.ts";
import { createCallApi, formOf, rootOf, type Answer, type ApiRequest, type Problem } from "../json-api.ts";
import { resultOf } from "../outcome.ts";
import { ApiError, RateLimited } from "./schema.ts";

interface Request {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below the API's root, for example `/users/@me`. */
  path: string;
  body?: unknown;
  files?: readonly OutboundFile[];
}

/** The code of a refusal with status 429 is `global` when it concerns all calls of the bot. */
export type Call = <Result>(
  request: Request,
  result: z.ZodType<Result>,
  signal: AbortSignal,
) => Promise<Answer<Result>>;

export interface ApiOptions {
  apiRoot: string;
  token: string;
}

/** How long a connection waits for the result of a call that it needs. */
export const callWithinMs = 10_000;

/** Discord blocks clients without a user agent of this form. */
const userAgent = "DiscordBot (Parley, 1.0)";

export function createCall({ apiRoot, token }: ApiOptions): Call {
  const root = rootOf(apiRoot);
  const limits = new Limits();
  const problemOf = (json: unknown, response: Response, { method, url }: ApiRequest): Problem | null => {
    const { status, headers } = response;
    const problem = status >= 200 && status < 300 ? null : describe(json, status, headers);
    const route = routeOf(method, url.slice(root.length));
    const resetMs = Number(headers.get("x-ratelimit-reset-after") ?? "NaN") * 1_000;
    if (status === 429) limits.close(problem?.code === "global" ? "global" : route, problem?.retryAfterMs ?? 1_000);
    else if (headers.get("x-ratelimit-remaining") === "0" && resetMs > 0) limits.close(route, resetMs);
    return problem;
  };
  const headers = { authorization: `Bot ${token}`, "user-agent": userAgent };
  const callApi = createCallApi({ headers, token, problemOf });
  return async ({ method, path, body, files = [] }, result, signal) => {
    // Calls that Discord would refuse count towards a ban of the address (10,000 in 10 minutes).
    const limit = limits.of(routeOf(method, path));
    if (limit !== null) return { kind: "refused", status: 429, reason: "rate limit", ...limit };
    const attached = Object.fromEntries(files.map((file, index) => [`files[${index}]`, file]));
    const form = { body: formOf({ payload_json: JSON.stringify(body) }, attached) };
    const content = files.length > 0 ? form : body === undefined ? {} : { json: body };
    return callApi({ method, url: `${root}${path}`, ...content }, result, signal);
  };
}

/** When a call of a route may be made again. */
class Limits {
  /** Exhausted routes that are remembered; more are pruned. */
  static readonly #maxRoutes = 1_000;
  readonly #openAtMs = new Map<string, number>();

  close(route: string | null, forMs: number): void {
    if (route === null) return;
    const nowMs = performance.now();
    if (this.#openAtMs.size >= Limits.#maxRoutes) {
      for (const [key, atMs] of this.#openAtMs) if (atMs <= nowMs) this.#openAtMs.delete(key);
    }
    this.#openAtMs.set(route, nowMs + forMs);
  }

  /** Null: the route is open. */
  of(route: string | null): { code: string; retryAfterMs: number } | null {
    if (route === null) return null;
    const waitMs = (key: string) => Math.ceil((this.#openAtMs.get(key) ?? 0) - performance.now());
    const [own, global] = [waitMs(route), waitMs("global")];
    if (own <= 0 && global <= 0) return null;
    return { code: global > 0 ? "global" : "", retryAfterMs: Math.max(own, global) };
  }
}

function describe(json: unknown, status: number, headers: Headers): Problem {
  if (status === 429) {
    const { retry_after: seconds, global } = RateLimited.safeParse(json).data ?? {};
    const isGlobal = global === true || headers.get("x-ratelimit-scope") === "global";
    const retryAfterMs = seconds === undefined ? {} : { retryAfterMs: Math.ceil(seconds * 1_000) };
    return { reason: "rate limit", code: isGlobal ? "global" : "", ...retryAfterMs };
  }
  const { code, message, errors } = ApiError.safeParse(json).data ?? { code: 0, message: `HTTP ${status}` };
  const details = errors === undefined ? "" : `: ${JSON.stringify(errors).slice(0, 300)}`;
  return { code: String(code), reason: `${message} (${code === 0 ? status : code})${details}` };
}

/** Limits apply to a route in one channel: other ids do not count. Null: responses to interactions have no part in the limits of the bot. */
function routeOf(method: string, path: string): string | null {
  const [, root = "", id = "", ...rest] = path.replace(/\?.*/, "").split("/");
  if (root === "interactions" || root === "webhooks") return null;
  return [method, root, id, ...rest.map((segment) => (/^\d+$|%/.test(segment) ? "{}" : segment))].join("/");
}

/** The result of a call without which there is no connection. Throws as `resultOf`. */
export function required<Result>(answer: Answer<Result>): Result {
  return resultOf(answer, "Discord", ": reset it in the Developer Portal under Bot and enter the new one");
}
