// Calls of a signal-cli daemon: JSON-RPC over HTTP. The daemon answers with status 200 also when a call fails, so the body decides. It
// reports the answer, or how far a request got; callers decide what that means for a message.
import { z } from "zod";
import { parseJson } from "@parley/kit";
import { readUpTo, requestFailure } from "../transport.ts";

/** How the send to one recipient ended; several for a group. */
export type RecipientResult = z.infer<typeof RecipientResultSchema>;

/**
 * The result of a call. `refused`: the daemon answered with an error. `unreached`: certainly not executed. `lost`: sent, but no readable
 * answer arrived.
 */
export type Answer<Result> =
  | { kind: "ok"; result: Result }
  | { kind: "refused"; code: number; message: string; results: RecipientResult[] }
  | { kind: "unreached"; reason: string }
  | { kind: "lost"; reason: string };

export type Call = <Result>(
  method: string,
  parameters: Record<string, unknown>,
  result: z.ZodType<Result>,
  signal: AbortSignal,
) => Promise<Answer<Result>>;

/** Error codes of the daemon; -1 is a mistake of the caller, below -32000 are those of JSON-RPC. */
export const errorCode = { user: -1, io: -3, untrustedKey: -4, rateLimit: -5, parameters: -32_602, method: -32_601 };

const RecipientResultSchema = z.object({
  type: z.string(),
  retryAfterSeconds: z.number().nonnegative().nullish(),
});
/** The result of a call that sends something. The timestamp is the id of the message. */
export const SendResult = z.object({
  timestamp: z.number().int().nonnegative(),
  results: z.array(RecipientResultSchema).default([]),
});

const Envelope = z.object({ jsonrpc: z.literal("2.0"), result: z.unknown() });
const Failure = z.object({
  error: z.object({
    code: z.number(),
    message: z.string().nullish(),
    data: z
      .object({ response: z.object({ results: z.array(RecipientResultSchema).default([]) }).nullish() })
      .nullish()
      .catch(null),
  }),
});

/** An attachment of 8 MiB in base64, with room for its frame. */
const maxAnswerBytes = 12 * 1024 * 1024;

/** The address of an endpoint of the daemon. */
export function endpoint(daemonUrl: string, name: "rpc" | "events" | "check"): string {
  return `${daemonUrl.replace(/\/+$/, "")}/api/v1/${name}`;
}

/** Calls for one number; a daemon with several numbers needs it in each request, a daemon with one ignores it. */
export function createCall(daemonUrl: string, number: string, fetch: () => typeof globalThis.fetch): Call {
  const url = endpoint(daemonUrl, "rpc");
  let lastId = 0;
  return async (method, parameters, result, signal) => {
    if (signal.aborted) return { kind: "unreached", reason: "cancelled before it was sent" };
    const id = String(++lastId);
    let status: number;
    let body: Uint8Array | "too_large";
    try {
      const response = await fetch()(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...parameters, account: number } }),
        redirect: "manual",
        signal,
      });
      status = response.status;
      body = await readUpTo(response, maxAnswerBytes);
    } catch (error) {
      return requestFailure(error, signal);
    }
    if (status === 504) return { kind: "lost", reason: "HTTP 504" };
    if (status !== 200) return { kind: "unreached", reason: `HTTP ${status} at ${url}` };
    if (body === "too_large") return { kind: "lost", reason: `the answer to ${method} is larger than expected` };
    const json = parseJson(Buffer.from(body).toString("utf8"));
    const failure = Failure.safeParse(json);
    if (failure.success) {
      const { code, message, data } = failure.data.error;
      return { kind: "refused", code, message: message ?? `error ${code}`, results: data?.response?.results ?? [] };
    }
    const envelope = Envelope.safeParse(json);
    const parsed = result.safeParse(envelope.data?.result);
    if (envelope.success && parsed.success) return { kind: "ok", result: parsed.data };
    return { kind: "lost", reason: `unreadable answer to ${method}` };
  };
}
