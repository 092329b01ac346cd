// What the errors of OpenAI-compatible servers mean, whether they come as a status or in the middle of a stream; pure.
import { z } from "zod";
import { ModelError, type ModelFailure } from "./provider.ts";
import { retryAfter } from "./retry-after.ts";

const keyVariable = "OPENAI_API_KEY";

/** An error as a server describes it; empty where it says nothing. */
export interface ServerError {
  message: string;
  type: string;
  code: string;
}

const word = z.union([z.string(), z.number()]).nullish().catch(null);
const Described = z.object({ message: word, type: word, code: word });
/** OpenAI and llama.cpp: an object. LM Studio: a text. Older vLLM: the object itself. Gateways: `detail`. */
const ErrorBody = z.union([
  z.object({ error: Described }),
  z.object({ error: z.string().min(1) }),
  z.object({ object: z.literal("error"), ...Described.shape }),
  z.object({ detail: z.string() }),
]);

/** The error that a parsed body or chunk is, or undefined. */
export function errorIn(body: unknown): ServerError | undefined {
  const parsed = ErrorBody.safeParse(body);
  if (!parsed.success) return undefined;
  const { data } = parsed;
  if ("detail" in data) return plainError(data.detail);
  if ("object" in data) return described(data);
  return typeof data.error === "string" ? plainError(data.error) : described(data.error);
}

export function plainError(message: string): ServerError {
  return { message, type: "", code: "" };
}

function described({ message, type, code }: z.infer<typeof Described>): ServerError {
  return { message: String(message ?? ""), type: String(type ?? ""), code: String(code ?? "") };
}

/** A request that was refused, with the body as it came. */
export function refused(response: { status: number; statusText: string; headers: Headers }, body: string): ModelError {
  const { status } = response;
  const error = errorIn(parse(body)) ?? plainError(/^\s*</.test(body) ? "" : body.trim());
  const message = error.message.slice(0, 1_000) || `the model's server answers ${status} ${response.statusText}`.trim();
  const hint = status === 404 && error.type === "" ? " (does OPENAI_BASE_URL lack its /v1?)" : "";
  return new ModelError(failureOf(status, error), message + hint, {
    ...retryAfter(response.headers),
    keyVariable,
  });
}

/** An error inside a stream that began well. Without a word on its kind it is the server's. */
export function brokenOff(error: ServerError): ModelError {
  const status = Number(error.code);
  const failure =
    Number.isInteger(status) && status >= 400
      ? failureOf(status, error)
      : failureOf(/invalid|bad.?request|not.?found/i.test(`${error.type} ${error.code}`) ? 400 : 500, error);
  return new ModelError(failure, error.message.slice(0, 1_000) || "the model's server reports an error", {
    keyVariable,
  });
}

/** What was thrown on the way. `fetch` throws a TypeError where a server cannot be reached or the line breaks; the reason is its cause. */
export function thrown(error: unknown): ModelError {
  if (error instanceof ModelError) return error;
  if (!(error instanceof Error)) return new ModelError("invalid", String(error), { cause: error });
  const reason = error.cause instanceof Error ? error.cause : error;
  const code = "code" in reason && typeof reason.code === "string" ? reason.code : "";
  const lost = error instanceof TypeError || code !== "";
  return new ModelError(lost ? "connection" : "invalid", reason.message || code || "connection lost", { cause: error });
}

const overflow =
  /context[ _-]?(length|window|size)|max(imum)? model len|(prompt|input|request) (is )?too (long|large)|too many (input )?tokens|reduce the length of the (messages|prompt)|context the overflows|\bn_ctx\b|kv cache/i;

function failureOf(status: number, { message, type, code }: ServerError): ModelFailure {
  const kind = `${type} ${code}`;
  if (status === 402 || /insufficient_quota|billing|spend_limit/i.test(kind)) return "spend_limit";
  if (/exceeded your current quota|insufficient (balance|credits|quota)/i.test(message)) return "spend_limit";
  if (status === 401 || status === 403 || /invalid_api_key|authentication|permission/i.test(kind)) return "auth";
  if (status === 429 || /rate_?limit/i.test(kind)) return "rate_limit";
  if (status === 413 || /context_length|exceed_context/i.test(kind) || overflow.test(message))
    return "context_overflow";
  if (status === 503 || status === 529 || /overloaded/i.test(kind)) return "overloaded";
  return status >= 500 || status === 408 || status === 409 ? "server" : "invalid";
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
