// Maps errors of OpenAI-compatible servers to ModelError, from HTTP statuses and from inside streams; pure.
import { parseJson } from "@parley/kit";
import { z } from "zod";
import { ModelError, type ModelFailure } from "../provider.ts";
import { retryAfter } from "../retry-after.ts";

/** The fields of a server's error; a field is empty when the server omits it. */
export interface ServerError {
  message: string;
  type: string;
  code: string;
}

const optionalField = z.union([z.string(), z.number()]).nullish().catch(null);
const ErrorFields = z.object({ message: optionalField, type: optionalField, code: optionalField });
/**
 * The error formats of servers. OpenAI and llama.cpp: `error` is an object. LM Studio: `error` is a string. Older vLLM: the body is the
 * error. Gateways: `detail`.
 */
const ErrorBody = z.union([
  z.object({ error: ErrorFields }),
  z.object({ error: z.string().min(1) }),
  z.object({ object: z.literal("error"), ...ErrorFields.shape }),
  z.object({ detail: z.string() }),
]);

/** The error in a parsed response body or stream chunk; undefined when it contains none. */
export function errorIn(body: unknown): ServerError | undefined {
  const parsed = ErrorBody.safeParse(body);
  if (!parsed.success) return undefined;
  const { data } = parsed;
  if ("detail" in data) return plainError(data.detail);
  if ("object" in data) return errorOfFields(data);
  return typeof data.error === "string" ? plainError(data.error) : errorOfFields(data.error);
}

/** An error of which only the message is known. */
export function plainError(message: string): ServerError {
  return { message, type: "", code: "" };
}

function errorOfFields({ message, type, code }: z.infer<typeof ErrorFields>): ServerError {
  return { message: String(message ?? ""), type: String(type ?? ""), code: String(code ?? "") };
}

/**
 * The error for a response with a failure status. `body`: the raw response body. `addressSetting`: the setting or variable with the
 * server's address, for the hint.
 */
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

/** The error for an error event of an open stream. It has no HTTP status; without a known type it counts as a server error. */
export function streamError(error: ServerError): ModelError {
  const status = Number(error.code);
  const failure =
    Number.isInteger(status) && status >= 400
      ? failureOf(status, error)
      : failureOf(/invalid|bad.?request|not.?found/i.test(`${error.type} ${error.code}`) ? 400 : 500, error);
  return new ModelError(failure, error.message.slice(0, 1_000) || "the model's server reported an error");
}

/**
 * The error for an exception of a request. `fetch` throws a TypeError for an unreachable server or a lost connection, with the reason
 * as its cause.
 */
export function transportError(error: unknown): ModelError {
  if (error instanceof ModelError) return error;
  if (!(error instanceof Error)) return new ModelError("invalid", String(error), { cause: error });
  const reason = error.cause instanceof Error ? error.cause : error;
  const code = "code" in reason && typeof reason.code === "string" ? reason.code : "";
  const isConnectionError = error instanceof TypeError || code !== "";
  const failure = isConnectionError ? "connection" : "invalid";
  return new ModelError(failure, reason.message || code || "connection lost", { cause: error });
}

/** Messages of servers for a request that exceeds the context window; "context the overflows" is LM Studio's wording. */
const contextOverflowMessage =
  /context[ _-]?(length|window|size)|max(imum)? model len|(prompt|input|request) (is )?too (long|large)|too many (input )?tokens|reduce the length of the (messages|prompt)|context the overflows|\bn_ctx\b|kv cache/i;

const unknownModelMessage = /\bmodel\b.*\b(not found|does not exist|not exist)\b/i;

/** Classifies an error. A specific type, code or message takes precedence over a general status. */
function failureOf(status: number, { message, type, code }: ServerError): ModelFailure {
  const codes = `${type} ${code}`;
  if (status === 402 || /insufficient_quota|billing|spend_limit/i.test(codes)) return "spend_limit";
  if (/exceeded your current quota|insufficient (balance|credits|quota)/i.test(message)) return "spend_limit";
  if (status === 401 || status === 403 || /invalid_api_key|authentication|permission/i.test(codes)) return "auth";
  if (status === 429 || /rate_?limit/i.test(codes)) return "rate_limit";
  if (/model_not_found/i.test(codes) || (status === 404 && unknownModelMessage.test(message))) return "unknown_model";
  if (status === 413 || /context_length|exceed_context/i.test(codes) || contextOverflowMessage.test(message))
    return "context_overflow";
  if (status === 503 || status === 529 || /overloaded/i.test(codes)) return "overloaded";
  return status >= 500 || status === 408 || status === 409 ? "server" : "invalid";
}
