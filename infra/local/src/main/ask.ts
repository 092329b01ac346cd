// One message to a running cluster, as any OpenAI client would send it.

import { request } from "node:http";

import { LocalError } from "../errors.ts";

/** Sends `text` and returns the answer. Waits as long as the turn takes: turns have limits of their own. */
export async function ask(httpUrl: string, token: string, text: string, signal: AbortSignal): Promise<string> {
  const body = JSON.stringify({ model: "parley", messages: [{ role: "user", content: text }] });
  const { status, answer } = await post(`${httpUrl}/v1/chat/completions`, token, body, signal);
  let parsed: unknown;
  try {
    parsed = JSON.parse(answer);
  } catch {
    throw new LocalError(
      "answer_failed",
      `${httpUrl} answered ${status} with something that is not JSON: ${answer.slice(0, 200)}`,
    );
  }
  const content = at(parsed, "choices", 0, "message", "content");
  if (status === 200 && typeof content === "string") return content;
  const message = at(parsed, "error", "message");
  const said = typeof message === "string" ? message : `${httpUrl} answered ${status}: ${answer.slice(0, 200)}`;
  const fix = fixFor(status, said);
  throw new LocalError("answer_failed", said, fix === undefined ? {} : { fix });
}

function fixFor(status: number, said: string): string | undefined {
  if (/api[ -]?key|authentication|x-api-key/i.test(said))
    return "Check ANTHROPIC_API_KEY or OPENAI_API_KEY, whichever the model needs, or set PARLEY_MODEL=rehearsal.";
  if (status === 401)
    return "The cluster that runs on this home uses another token: PARLEY_TOKEN has to be the one it was started with.";
  return undefined;
}

/** Walks into parsed JSON; undefined where there is nothing. */
function at(value: unknown, ...path: (string | number)[]): unknown {
  let here = value;
  for (const key of path) {
    if (typeof here !== "object" || here === null) return undefined;
    here = (here as Record<string | number, unknown>)[key];
  }
  return here;
}

/** `fetch` gives up on headers after five minutes; a turn may take longer. */
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
