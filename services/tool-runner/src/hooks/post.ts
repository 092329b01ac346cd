// Posts to a hook's address: one request, bounded in time and size, no redirects. It does not know what the answer means.
import { errorMessage, maxHookOutputBytes } from "@parley/contracts";

export interface HookPost {
  url: string;
  /** Sent as a bearer token. */
  token: string | undefined;
  /** JSON. */
  body: string;
  timeoutMs: number;
  /** Ends the request as the timeout does. */
  signal: AbortSignal;
}

export type HookReply =
  | { kind: "answered"; status: number; body: string }
  | { kind: "timeout" }
  | { kind: "too_large" }
  | { kind: "unreachable"; reason: string };

export async function postHook(spec: HookPost): Promise<HookReply> {
  const timeout = AbortSignal.timeout(spec.timeoutMs);
  try {
    const response = await fetch(spec.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(spec.token === undefined ? {} : { authorization: `Bearer ${spec.token}` }),
      },
      body: spec.body,
      redirect: "manual",
      signal: AbortSignal.any([timeout, spec.signal]),
    });
    const body = await readBody(response);
    return body === undefined ? { kind: "too_large" } : { kind: "answered", status: response.status, body };
  } catch (error) {
    if (timeout.aborted) return { kind: "timeout" };
    return { kind: "unreachable", reason: describe(error) };
  }
}

/** Undefined when there is more than a hook may say; the rest is not read. */
async function readBody(response: Response): Promise<string | undefined> {
  if (response.body === null) return "";
  const body: AsyncIterable<Uint8Array> = response.body;
  const chunks: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of body) {
    total += chunk.length;
    if (total > maxHookOutputBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** `fetch` wraps what happened on the network in an error that says nothing. */
function describe(error: unknown): string {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return errorMessage(inner);
}
