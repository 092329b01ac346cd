// Posts a hook's input to its URL. Redirects are not followed: only the configured URL receives requests.
import { errorMessage, maxHookOutputBytes, type HookResult } from "@parley/contracts";
import { failed, parseAnswer, tooMuchOutput, tooSlow } from "./parse-response.ts";

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

/** Never rejects. */
export async function postHook({ url, token, body, timeoutMs, signal }: HookPost): Promise<HookResult> {
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body,
      redirect: "manual",
      signal: AbortSignal.any([timeout, signal]),
    });
    const text = await readBody(response);
    if (text === undefined) return tooMuchOutput;
    return response.ok ? parseAnswer(text) : failed(`its URL returned status ${response.status}`);
  } catch (error) {
    if (timeout.aborted) return tooSlow(timeoutMs);
    // `fetch` wraps a network error in a generic one; the cause has the details.
    const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return failed(`its URL could not be reached: ${errorMessage(inner)}`);
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
