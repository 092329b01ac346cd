// Sends one POST request to a hook's URL, with time and size limits and without redirects. It does not depend on the meaning of
// the response.
import { errorMessage, maxHookOutputBytes } from "@parley/contracts";

export interface HookPost {
  url: string;
  /** Sent as a bearer token. */
  token: string | undefined;
  /** JSON. */
  body: string;
  timeoutMs: number;
  /** Aborts the request in the same way as the timeout. */
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

/** Undefined when the response exceeds the limit; the rest is not read. */
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

/** `fetch` wraps a network error in a generic one; the cause has the details. */
function describe(error: unknown): string {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return errorMessage(inner);
}
