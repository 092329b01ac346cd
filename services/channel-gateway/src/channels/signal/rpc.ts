// Calls of a signal-cli daemon: JSON-RPC over HTTP. The daemon answers with status 200 also when a call fails, so the body decides.
import { z } from "zod";
import { createCallApi, rootOf, type Answer, type Problem } from "../json-api.ts";

/** The code of a refusal is that of the daemon, its status the one that corresponds to it. */
export type Call = <Result>(
  method: string,
  parameters: Record<string, unknown>,
  result: z.ZodType<Result>,
  signal: AbortSignal,
) => Promise<Answer<Result>>;

/** Error codes of the daemon; -1 is a mistake of the caller, below -32000 are those of JSON-RPC. */
export const errorCode = { user: -1, io: -3, untrustedKey: -4, rateLimit: -5, parameters: -32_602, method: -32_601 };

/** How the send to one recipient ended; several for a group. */
const Results = z
  .array(z.object({ type: z.string(), retryAfterSeconds: z.number().nonnegative().nullish() }))
  .default([]);
const Sent = z.object({ result: z.object({ results: Results }) });
const Failed = z.object({
  error: z.object({
    code: z.number(),
    message: z.string().nullish(),
    data: z
      .object({ response: z.object({ results: Results }).nullish() })
      .nullish()
      .catch(null),
  }),
});

/** The address of an endpoint of the daemon. */
export function endpoint(daemonUrl: string, name: "rpc" | "events" | "check"): string {
  return `${rootOf(daemonUrl)}/api/v1/${name}`;
}

/** Calls for one number; a daemon with several numbers needs it in each request, a daemon with one ignores it. */
export function createCall(daemonUrl: string, number: string): Call {
  const url = endpoint(daemonUrl, "rpc");
  const callApi = createCallApi({ token: "", problemOf });
  let lastId = 0;
  return (method, parameters, result, signal) => {
    const json = { jsonrpc: "2.0", id: String(++lastId), method, params: { ...parameters, account: number } };
    const envelope = z.object({ jsonrpc: z.literal("2.0"), result }).transform((answer) => answer.result);
    return callApi({ method: "POST", url, json }, envelope, signal);
  };
}

function problemOf(json: unknown, { status }: Response, { url }: { url: string }): Problem | null {
  if (status !== 200) return { status: status === 504 ? 504 : 503, reason: `HTTP ${status} at ${url}` };
  const failed = Failed.safeParse(json).data?.error;
  if (failed === undefined) {
    const results = Sent.safeParse(json).data?.result.results ?? [];
    // A message that reached one member of a group is sent.
    const isSent = results.length === 0 || results.some(({ type }) => type === "SUCCESS");
    return isSent ? null : problemOfResults(results, "not delivered");
  }
  const { code, message, data } = failed;
  const reason = message ?? `error ${code}`;
  const results = data?.response?.results ?? [];
  const problem = results.length > 0 ? problemOfResults(results, reason) : { status: statusOf(code, reason), reason };
  return { code: String(code), ...problem };
}

function statusOf(code: number, reason: string): number {
  if (code === errorCode.rateLimit) return 429;
  // The daemon does not know the account: the message can be sent once that is corrected.
  if (code === errorCode.parameters) return 401;
  // The daemon had no connection to Signal's servers.
  if (/\((?:UnknownHost|Connect|NoRouteToHost)Exception\)/.test(reason)) return 503;
  // After any other error the message may have been sent.
  return code === errorCode.user || code === errorCode.untrustedKey || code === errorCode.method ? 400 : 504;
}

/** A send that reached nobody. */
function problemOfResults(results: z.infer<typeof Results>, reason: string): Problem {
  const types = new Set(results.map(({ type }) => type));
  // The request to Signal's servers may have arrived.
  if (types.has("NETWORK_FAILURE")) return { status: 504, reason: `${reason}: network failure` };
  if (types.has("RATE_LIMIT_FAILURE")) {
    const seconds = Math.max(0, ...results.map(({ retryAfterSeconds }) => retryAfterSeconds ?? 0));
    const retryAfter = seconds > 0 ? { retryAfterMs: seconds * 1_000 } : {};
    return { status: 429, reason: `${reason}: limited by Signal`, ...retryAfter };
  }
  const advice = types.has("IDENTITY_FAILURE")
    ? ": the safety number changed; check it and run `signal-cli trust`"
    : types.has("UNREGISTERED_FAILURE")
      ? ": not registered with Signal"
      : "";
  return { status: 400, reason: `${reason}${advice}` };
}
