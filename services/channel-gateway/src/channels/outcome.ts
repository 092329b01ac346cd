// What a platform's answer means for a message, and for the connection of an account. Pure.
import { backoffMs } from "@parley/kit";
import { AccountRejectedError, RateLimitedError, type SendOutcome } from "./channel.ts";
import type { Answer, Failure, Refusal } from "./json-api.ts";

export interface OutcomeRules {
  /** The number of earlier attempts of the message. Default 0. */
  attempts?: number;
  /** What a limit of the platform pauses. Default: nothing but this message. */
  pauses?: "conversation" | "account";
  /** The owner can correct what was refused, for example by giving a permission: the message waits. Default false. */
  isCorrectable?: boolean;
  /** How often a call is repeated that may have been executed: the platform recognises repetitions. Default 0. */
  repetitions?: number;
}

/** Pauses between attempts of a message. */
const retries = { firstMs: 1_000, maxMs: 60_000 };
/** Pause while the platform refuses the credentials or a permission is missing: the message can be sent once that is corrected. */
const correctionPauseMs = 60_000;

/** The outcome of a message whose call failed. */
export function outcomeOf(
  failure: Failure,
  { attempts = 0, pauses, isCorrectable = false, repetitions = 0 }: OutcomeRules = {},
): Exclude<SendOutcome, { state: "sent" }> {
  const { kind, reason } = failure;
  const pauseMs = backoffMs(attempts + 1, retries);
  if (kind === "unreached") return { state: "retry", afterMs: pauseMs, reason };
  const { status, retryAfterMs } = kind === "lost" ? { status: 504, retryAfterMs: null } : failure;
  const afterMs = retryAfterMs ?? pauseMs;
  if (status === 429) return { state: "retry", afterMs, reason, ...(pauses === undefined ? {} : { scope: pauses }) };
  // A proxy timed out, but the platform may have executed the call. With repetitions this holds for every error of the server.
  if (status === 504 || (status >= 500 && repetitions > 0)) {
    return attempts < repetitions ? { state: "retry", afterMs, reason } : { state: "unknown", reason };
  }
  if (status >= 500) return { state: "retry", afterMs, reason };
  if (status === 401 || isCorrectable) return { state: "retry", afterMs: correctionPauseMs, reason };
  return { state: "dropped", reason };
}

/**
 * The outcome of an edit, a deletion or a reaction. `isDone`: whether a refusal means that nothing is left to do. Their limits are their
 * own, so that new messages need not wait.
 */
export function outcomeOfChange(
  answer: Answer<unknown>,
  messageId: string | null,
  isDone: (refusal: Refusal) => boolean = () => false,
  rules: OutcomeRules = {},
): SendOutcome {
  const done = answer.kind === "ok" || (answer.kind === "refused" && isDone(answer));
  return done ? { state: "sent", providerMessageId: messageId } : outcomeOf(answer, rules);
}

/** Throws RateLimitedError when a call that nothing depends on was refused by a limit of the account. */
export function throwIfLimited(answer: Answer<unknown>): void {
  if (answer.kind === "refused" && answer.status === 429)
    throw new RateLimitedError(answer.retryAfterMs ?? retries.firstMs);
}

/** The platform could not be reached, or does not work. */
export class PlatformUnavailableError extends Error {
  override readonly name = "PlatformUnavailableError";
}

/**
 * The result of a call without which there is no connection. Throws AccountRejectedError when the platform refuses the credentials (status
 * 401), and PlatformUnavailableError otherwise. `advice`: what to do about refused credentials.
 */
export function resultOf<Result>(answer: Answer<Result>, platform: string, advice = ""): Result {
  if (answer.kind === "ok") return answer.result;
  if (answer.kind === "refused" && answer.status === 401) {
    throw new AccountRejectedError(`token refused by ${platform} (${answer.reason})${advice}`);
  }
  const what = answer.kind === "refused" ? "responded with an error" : "could not be reached";
  throw new PlatformUnavailableError(`${platform} ${what} (${answer.reason})`);
}
