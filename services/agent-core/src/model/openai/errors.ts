// Maps errors of OpenAI-compatible servers to ModelError, from HTTP statuses and from inside streams; pure.
import { parseJson } from "@parley/kit";
import { z } from "zod";
import { ModelError, type ModelFailure } from "../provider.ts";
import { retryAfter } from "../retry-after.ts";

/** An error as described by a server; empty fields when it does not describe it. */
export interface ServerError {
  message: string;
  type: string;
  code: string;
}

const word = z.union([z.string(), z.number()]).nullish().catch(null);
const Described = z.object({ message: word, type: word, code: word });
/** OpenAI and llama.cpp: an object. LM Studio: a string. Older vLLM: the object itself. Gateways: `detail`. */
const ErrorBody = z.union([
  z.object({ error: Described }),
  z.object({ error: z.string().min(1) }),
  z.object({ object: z.literal("error"), ...Described.shape }),
  z.object({ detail: z.string() }),
]);

/** The error in a parsed body or chunk, or undefined. */
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

/** The error for a rejected request; `body`: the raw response. `addressSetting`: where the server's address is set. */
export function rejectedRequest(
  response: { status: number; statusText: string; headers: Headers },
  body: string,
  addressSetting: string,
): ModelError {
  const { status } = response;
  const error = errorIn(parseJson(body)) ?? plainError(/^\s*</.test(body) ? "" : body.trim());
  const message =
    error.message.slice(0, 1_000) || `the model's server returned ${status} ${response.statusText}`.trim();
  const hint = status === 404 && error.type === "" ? ` (is /v1 missing in ${addressSetting}?)` : "";
  return new ModelError(failureOf(status, error), message + hint, retryAfter(response.headers));
}

/** An error inside an open stream. Without a type it counts as a server error. */
export function streamError(error: ServerError): ModelError {
  const status = Number(error.code);
  const failure =
    Number.isInteger(status) && status >= 400
      ? failureOf(status, error)
      : failureOf(/invalid|bad.?request|not.?found/i.test(`${error.type} ${error.code}`) ? 400 : 500, error);
  return new ModelError(failure, error.message.slice(0, 1_000) || "the model's server reported an error");
}

/**
 * A thrown error. `fetch` throws a TypeError for an unreachable server or a lost connection, with the reason as its
 * cause.
 */
export function transportError(error: unknown): ModelError {
  if (error instanceof ModelError) return error;
  if (!(error instanceof Error)) return new ModelError("invalid", String(error), { cause: error });
  const reason = error.cause instanceof Error ? error.cause : error;
  const code = "code" in reason && typeof reason.code === "string" ? reason.code : "";
  const lost = error instanceof TypeError || code !== "";
  return new ModelError(lost ? "connection" : "invalid", reason.message || code || "connection lost", { cause: error });
}

const overflow =
  /context[ _-]?(length|window|size)|max(imum)? model len|(prompt|input|request) (is )?too (long|large)|too many (input )?tokens|reduce the length of the (messages|prompt)|context the overflows|\bn_ctx\b|kv cache/i;

const noSuchModel = /\bmodel\b.*\b(not found|does not exist|not exist)\b/i;

function failureOf(status: number, { message, type, code }: ServerError): ModelFailure {
  const kind = `${type} ${code}`;
  if (status === 402 || /insufficient_quota|billing|spend_limit/i.test(kind)) return "spend_limit";
  if (/exceeded your current quota|insufficient (balance|credits|quota)/i.test(message)) return "spend_limit";
  if (status === 401 || status === 403 || /invalid_api_key|authentication|permission/i.test(kind)) return "auth";
  if (status === 429 || /rate_?limit/i.test(kind)) return "rate_limit";
  if (/model_not_found/i.test(kind) || (status === 404 && noSuchModel.test(message))) return "unknown_model";
  if (status === 413 || /context_length|exceed_context/i.test(kind) || overflow.test(message))
    return "context_overflow";
  if (status === 503 || status === 529 || /overloaded/i.test(kind)) return "overloaded";
  return status >= 500 || status === 408 || status === 409 ? "server" : "invalid";
}
