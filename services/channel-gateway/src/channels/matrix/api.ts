// Calls of the client-server API over fetch, with parsed responses. Requests that send have transaction ids, so a request without a
// response may be repeated. The access token is only in a header and never in an error.
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { parseJson } from "@parley/kit";
import { AccountRejectedError } from "../channel.ts";
import { requestFailure } from "../transport.ts";

/** The result of a call. `failed`: no readable response; the request may have been executed. */
export type Answer<Result> =
  | { kind: "ok"; result: Result }
  | { kind: "refused"; status: number; code: string; reason: string; retryAfterMs: number | null }
  | { kind: "failed"; reason: string };

interface Call<Result> {
  method: "GET" | "POST" | "PUT";
  /** Below `/_matrix`; made by `path`. */
  path: string;
  query?: Readonly<Record<string, string>>;
  /** An object is sent as JSON. */
  body?: object;
  file?: { mediaType: string; content: Uint8Array };
  result: z.ZodType<Result>;
  signal: AbortSignal;
}

export interface MatrixApi {
  <Result>(call: Call<Result>): Promise<Answer<Result>>;
  /** The response itself, for downloads. Rejects without a response. */
  get(path: string, signal: AbortSignal): Promise<Response>;
}

/** A request of the connection that can be repeated later. */
export class MatrixUnavailableError extends Error {
  override readonly name = "MatrixUnavailableError";
}

const Refusal = z.object({
  errcode: z.string().catch("M_UNKNOWN"),
  error: z.string().catch(""),
  retry_after_ms: z.number().nonnegative().optional().catch(undefined),
});
/** The token was never valid, was logged out, or belongs to an account that was deactivated or locked. */
const rejections: ReadonlySet<string> = new Set([
  "M_UNKNOWN_TOKEN",
  "M_MISSING_TOKEN",
  "M_USER_DEACTIVATED",
  "M_USER_LOCKED",
]);

/** A path whose values are encoded. */
export function path(parts: TemplateStringsArray, ...values: string[]): string {
  return String.raw({ raw: parts }, ...values.map(encodeURIComponent));
}

export function createApi(homeserver: string, token: string, fetchOf: () => typeof fetch): MatrixApi {
  const root = `${homeserver.replace(/\/+$/, "")}/_matrix`;
  const headers = { authorization: `Bearer ${token}` };
  const call = async <Result>(options: Call<Result>): Promise<Answer<Result>> => {
    const { method, query = {}, body, file, result, signal } = options;
    let response: Response;
    let text: string;
    try {
      response = await fetchOf()(
        `${root}${options.path}${Object.keys(query).length === 0 ? "" : `?${new URLSearchParams(query).toString()}`}`,
        {
          method,
          headers: { ...headers, "content-type": file?.mediaType ?? "application/json" },
          ...(file === undefined ? {} : { body: Buffer.from(file.content) }),
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          signal,
        },
      );
      text = await response.text();
    } catch (error) {
      return { kind: "failed", reason: requestFailure(error, signal).reason };
    }
    const json = parseJson(text);
    if (!response.ok) return refusalOf(response, json);
    const parsed = result.safeParse(json);
    if (parsed.success) return { kind: "ok", result: parsed.data };
    return { kind: "failed", reason: `unreadable response to ${method} ${options.path}` };
  };
  return Object.assign(call, {
    get: (of: string, signal: AbortSignal) => fetchOf()(`${root}${of}`, { headers, signal }),
  });
}

function refusalOf({ status, headers }: Response, json: unknown): Answer<never> {
  const {
    errcode: code,
    error,
    retry_after_ms: afterMs,
  } = Refusal.safeParse(json).data ?? {
    errcode: "M_UNKNOWN",
    error: "",
    retry_after_ms: undefined,
  };
  const afterSeconds = Number(headers.get("retry-after") ?? Number.NaN);
  const retryAfterMs = afterMs ?? (Number.isFinite(afterSeconds) ? afterSeconds * 1_000 : null);
  return { kind: "refused", status, code, reason: `${code} ${error || `HTTP ${status}`}`, retryAfterMs };
}

/**
 * The result of a call of the connection; null when the server refuses it for good. Throws AccountRejectedError when the token is not
 * accepted, and MatrixUnavailableError for anything that may pass, after the pause that the server demands.
 */
export async function settled<Result>(answer: Answer<Result>, signal: AbortSignal): Promise<Result | null> {
  if (answer.kind === "ok") return answer.result;
  if (answer.kind === "failed") throw new MatrixUnavailableError(`the homeserver did not respond (${answer.reason})`);
  if (rejections.has(answer.code) || answer.status === 401) {
    throw new AccountRejectedError(`access token refused by the homeserver (${answer.reason})`);
  }
  if (answer.status !== 429 && answer.status < 500) return null;
  await delay(answer.retryAfterMs ?? 0, undefined, { signal }).catch(() => undefined);
  throw new MatrixUnavailableError(`the homeserver responded with ${answer.reason}`);
}
