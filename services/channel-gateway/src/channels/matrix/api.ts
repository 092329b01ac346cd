// Calls of the Matrix client-server API. Requests that send have transaction ids, so a request without a response can be repeated.
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { createCallApi, rootOf, type Answer, type Problem } from "../json-api.ts";
import { resultOf } from "../outcome.ts";

interface Call<Result> {
  method: "GET" | "POST" | "PUT";
  /** The path after `/_matrix`, built with the tag `path`. */
  path: string;
  query?: Readonly<Record<string, string>>;
  /** An object is sent as JSON. */
  body?: object;
  file?: { mediaType: string; content: Uint8Array };
  result: z.ZodType<Result>;
  signal: AbortSignal;
}

/** Calls the API of one homeserver with one token. */
export interface MatrixApi {
  <Result>(call: Call<Result>): Promise<Answer<Result>>;
  /** The base URL and the request headers for downloads of media. */
  readonly media: { root: string; headers: Readonly<Record<string, string>> };
}

const ErrorResponse = z.object({
  errcode: z.string().catch("M_UNKNOWN"),
  error: z.string().catch(""),
  retry_after_ms: z.number().nonnegative().optional().catch(undefined),
});
/** Error codes for a token that was never valid, was logged out, or belongs to a deactivated or locked account. */
const tokenErrorCodes: ReadonlySet<string> = new Set([
  "M_UNKNOWN_TOKEN",
  "M_MISSING_TOKEN",
  "M_USER_DEACTIVATED",
  "M_USER_LOCKED",
]);

/** Template tag for a path: percent-encodes the inserted values. */
export function path(parts: TemplateStringsArray, ...values: string[]): string {
  return String.raw({ raw: parts }, ...values.map(encodeURIComponent));
}

/** Creates the API of a homeserver. A rejected token gets status 401, independent of the status that the server chose. */
export function createApi(homeserver: string, token: string): MatrixApi {
  const root = `${rootOf(homeserver)}/_matrix`;
  const headers = { authorization: `Bearer ${token}` };
  const callApi = createCallApi({ headers, token, problemOf });
  const call = <Result>({ method, query, body, file, result, signal, path: apiPath }: Call<Result>) => {
    const url = `${root}${apiPath}${query === undefined ? "" : `?${new URLSearchParams(query).toString()}`}`;
    const contentType = { headers: { "content-type": file?.mediaType ?? "application/json" } };
    const content = file === undefined ? { json: body } : { body: file.content };
    return callApi({ method, url, ...contentType, ...content }, result, signal);
  };
  return Object.assign(call, { media: { root, headers } });
}

function problemOf(json: unknown, { ok, status }: Response): Problem | null {
  if (ok) return null;
  const { errcode: code, error, retry_after_ms: retryAfterMs } = ErrorResponse.parse(json ?? {});
  return {
    code,
    reason: `${code} ${error || `HTTP ${status}`}`,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(tokenErrorCodes.has(code) ? { status: 401 } : {}),
  };
}

/**
 * The result of a call that receives messages or joins rooms; null when the server refuses it permanently. Throws like `resultOf` when the
 * token is rejected. Throws for temporary errors too, after the pause that the server demands.
 */
export async function resultOrNull<Result>(answer: Answer<Result>, signal: AbortSignal): Promise<Result | null> {
  if (answer.kind === "refused") {
    const { status, retryAfterMs } = answer;
    if (status < 500 && status !== 429 && status !== 401) return null;
    if (status !== 401) await delay(retryAfterMs ?? 0, undefined, { signal }).catch(() => undefined);
  }
  return resultOf(answer, "the homeserver");
}
