// Sends one message to a running cluster through its OpenAI-compatible API.

import { request } from "node:http";

import { LocalError } from "../errors.ts";

/** Sends `text` and returns the answer. Has no timeout: turns have their own limits. */
export async function ask(httpUrl: string, token: string, text: string, signal: AbortSignal): Promise<string> {
  const body = JSON.stringify({ model: "parley", messages: [{ role: "user", content: text }] });
  const { status, answer } = await post(`${httpUrl}/v1/chat/completions`, token, body, signal);
  let parsed: unknown;
  try {
    parsed = JSON.parse(answer);
  } catch {
    throw new LocalError(
      "answer_failed",
      `${httpUrl} returned status ${status} and a body that is not JSON: ${answer.slice(0, 200)}`,
    );
  }
  const content = at(parsed, "choices", 0, "message", "content");
  if (status === 200 && typeof content === "string") return content;
  const message = at(parsed, "error", "message");
  const said = typeof message === "string" ? message : `${httpUrl} returned status ${status}: ${answer.slice(0, 200)}`;
  const fix = fixFor(status, said);
  throw new LocalError("answer_failed", said, fix === undefined ? {} : { fix });
}

function fixFor(status: number, said: string): string | undefined {
  if (/api[ -]?key|authentication|x-api-key/i.test(said))
    return "Check the model's key (ANTHROPIC_API_KEY or OPENAI_API_KEY), or set PARLEY_MODEL=rehearsal.";
  if (status === 401)
    return "The cluster on this home uses another token: set PARLEY_TOKEN to the token that it was started with.";
  return undefined;
}

/** The value at a path of parsed JSON; undefined if absent. */
function at(value: unknown, ...path: (string | number)[]): unknown {
  let here = value;
  for (const key of path) {
    if (typeof here !== "object" || here === null) return undefined;
    here = (here as Record<string | number, unknown>)[key];
  }
  return here;
}

/** `fetch` waits at most five minutes for headers; a turn may take longer. */
async function post(
  url: string,
  token: string,
  body: string,
  signal: AbortSignal,
): Promise<{ status: number; answer: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; answer: string }>();
  const headers = {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  };
  const sending = request(url, { method: "POST", headers, signal }, (response) => {
    let answer = "";
    response.setEncoding("utf8").on("data", (part: string) => (answer += part));
    response.once("end", () => resolve({ status: response.statusCode ?? 0, answer }));
    response.once("error", reject);
  });
  sending.once("error", (error) => {
    reject(
      signal.aborted
        ? (signal.reason as Error)
        : new LocalError("answer_failed", `${url} cannot be reached: ${error.message}`, { cause: error }),
    );
  });
  sending.end(body);
  return promise;
}
