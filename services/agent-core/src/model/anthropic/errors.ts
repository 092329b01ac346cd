// Maps errors of Anthropic's SDK and API to ModelError; pure.
import { errorMessage } from "@parley/contracts";
import { APIConnectionError, APIError, AnthropicError } from "@anthropic-ai/sdk";
import { ModelError, type ModelFailure } from "../provider.ts";
import { retryAfter } from "../retry-after.ts";

/** 429 codes that waiting does not fix: the account's own limit is used up. */
const spendLimits = new Set(["enforced_spend_limit_reached", "contract_spend_limit_reached"]);

const keyVariable = "ANTHROPIC_API_KEY";

export function toModelError(error: unknown): ModelError {
  if (error instanceof ModelError) return error;
  const message = errorMessage(error);
  if (error instanceof APIConnectionError) return new ModelError("connection", message, { cause: error, keyVariable });
  if (error instanceof APIError) {
    const { type, errorCode } = error;
    const status = error.status as number | undefined;
    const reason = error.apiMessage ?? message;
    const waiting = retryAfter(error.headers as Headers | undefined);
    return new ModelError(failureOf({ status, type, errorCode }, reason), reason, {
      cause: error,
      keyVariable,
      ...waiting,
    });
  }
  // A dropped socket or an early end of stream is the SDK's base error or a runtime error.
  const lost = error instanceof AnthropicError || error instanceof TypeError || isSystemError(error);
  return new ModelError(lost ? "connection" : "invalid", message, { cause: error, keyVariable });
}

/** The fields of the SDK's error. */
interface Refusal {
  status: number | undefined;
  type: string | null;
  errorCode: string | null;
}

function failureOf(error: Refusal, message: string): ModelFailure {
  const { type, errorCode, status = 0 } = error;
  // An error event inside a stream has a type but no status.
  if (type === "overloaded_error" || status === 529) return "overloaded";
  if (type === "rate_limit_error" || status === 429) {
    // `ramp_limit_exceeded` is a temporary limit.
    return spendLimits.has(errorCode ?? "") ? "spend_limit" : "rate_limit";
  }
  if (type === "api_error" || status >= 500 || status === 408 || status === 409) return "server";
  if (status === 401 || status === 403) return "auth";
  if (status === 402) return "spend_limit";
  if (type === "not_found_error" && message.startsWith("model:")) return "unknown_model";
  if (status === 413 || /prompt is too long|context window|exceed context limit/i.test(message))
    return "context_overflow";
  return "invalid";
}

function isSystemError(error: unknown): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}
