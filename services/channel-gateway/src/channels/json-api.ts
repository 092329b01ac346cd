// Calls of a platform's API over fetch, with parsed responses. It reports the response, or how far a request got; outcome.ts decides what
// that means for a message. Addresses may contain secrets, so no address and no message of fetch leaves this file.
import { parseJson } from "@parley/kit";
import type { z } from "zod";
import { readUpTo, requestFailure, type RequestFailure } from "./transport.ts";

/** The platform responded and did not execute the call. */
export interface Refusal {
  kind: "refused";
  /** The HTTP status, or the one that corresponds to the platform's error. */
  status: number;
  /** The platform's error code; empty without one. */
  code: string;
  /** The platform's description, without secrets. */
  reason: string;
  retryAfterMs: number | null;
}

/** Why a call has no result. `unreached`: certainly not executed. `lost`: sent, but no readable response arrived. */
export type Failure = Refusal | RequestFailure;

export type Answer<Result> = { kind: "ok"; result: Result } | Failure;

/** The error that a response reports; fields that are left out follow from the HTTP response. */
export type Problem = Partial<Omit<Refusal, "kind">>;

export interface ApiRequest {
  method: string;
  url: string;
  headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  json?: unknown;
  body?: FormData | URLSearchParams | Uint8Array;
}

export interface ApiOptions {
  headers?: Readonly<Record<string, string>>;
  /** Removed from reasons. */
  token: string;
  /** Null: the response is a result. */
  problemOf: (json: unknown, response: Response, request: ApiRequest) => Problem | null;
}

export type CallApi = <Result>(
  request: ApiRequest,
  result: z.ZodType<Result>,
  signal: AbortSignal,
) => Promise<Answer<Result>>;

const maxResponseBytes = 64 * 1024 * 1024;

export function createCallApi({ headers: common, token, problemOf }: ApiOptions): CallApi {
  return async (request, result, signal) => {
    if (signal.aborted) return { kind: "unreached", reason: "cancelled before it was sent" };
    let response: Response;
    let body: Uint8Array | "too_large";
    try {
      const { headers, content } = await contentOf(request);
      response = await fetch(request.url, {
        method: request.method,
        headers: { ...common, ...headers, ...request.headers },
        ...(content === undefined ? {} : { body: content }),
        redirect: "manual",
        signal,
      });
      body = await readUpTo(response, maxResponseBytes);
    } catch (error) {
      return requestFailure(error, signal);
    }
    const json = body === "too_large" ? undefined : parseJson(Buffer.from(body).toString("utf8"));
    const problem = problemOf(json, response, request);
    if (problem !== null) return refusalOf(problem, response, token);
    const parsed = result.safeParse(json);
    return parsed.success ? { kind: "ok", result: parsed.data } : { kind: "lost", reason: "unreadable response" };
  };
}

function refusalOf({ status, code = "", reason = "", retryAfterMs }: Problem, response: Response, token: string) {
  const shown = token === "" ? reason : reason.replaceAll(token, "[secret]");
  return {
    kind: "refused" as const,
    status: status ?? response.status,
    code,
    reason: shown === "" ? `HTTP ${response.status}` : shown,
    retryAfterMs: retryAfterMs ?? secondsIn(response.headers.get("retry-after")),
  };
}

/** The milliseconds of a header in seconds; null for anything else. */
function secondsIn(header: string | null): number | null {
  return header !== null && /^\d{1,6}(?:\.\d+)?$/.test(header) ? Math.ceil(Number(header) * 1_000) : null;
}

async function contentOf({ json, body }: ApiRequest) {
  if (json !== undefined) return { headers: { "content-type": "application/json" }, content: JSON.stringify(json) };
  if (body === undefined) return { headers: {} };
  // Encoded first: a form that fetch still reads during an abort causes an uncatchable rejection.
  const encoded = new Response(body instanceof Uint8Array ? Buffer.from(body) : body);
  const type = encoded.headers.get("content-type");
  return { headers: type === null ? {} : { "content-type": type }, content: await encoded.arrayBuffer() };
}

/** The files of a form, by the name of their field. */
export function formOf(
  fields: Readonly<Record<string, unknown>>,
  files: Readonly<Record<string, { name: string; mediaType: string; content: Uint8Array }>>,
): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    form.append(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  for (const [field, { name, mediaType, content }] of Object.entries(files)) {
    form.append(field, new Blob([Uint8Array.from(content)], { type: mediaType }), name);
  }
  return form;
}

/** An address without slashes at its end. */
export function rootOf(address: string): string {
  return address.replace(/\/+$/, "");
}
