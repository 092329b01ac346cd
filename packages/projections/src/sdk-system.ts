// System messages with the fields and values of the SDK's types: retries, compactions, sub-agents. Pure.
import type { SessionEvent } from "@parley/contracts";
import type { ApiError, SdkBody } from "./sdk-types.ts";

type Event<T extends SessionEvent["type"]> = Extract<SessionEvent, { type: T }>;

/** The SDK's words for failures of model calls; the others are `unknown`. */
const apiErrors: Readonly<Record<string, ApiError>> = {
  auth: "authentication_failed",
  spend_limit: "billing_error",
  rate_limit: "rate_limit",
  overloaded: "overloaded",
  invalid: "invalid_request",
  server: "server_error",
};

/** A retry of a model call; its reason begins with the failure. */
export function retryOf({ attempt, tries = 1, delayMs, reason }: Event<"model.retry">): SdkBody {
  const [failure = ""] = reason.split(":");
  return {
    type: "system",
    subtype: "api_retry",
    attempt: attempt - 1,
    max_retries: tries - 1,
    retry_delay_ms: delayMs,
    error_status: null,
    error: Object.hasOwn(apiErrors, failure) ? (apiErrors[failure] ?? "unknown") : "unknown",
    details: reason,
  };
}

/** A compaction; `demand` is a request of a person or a program. */
export function boundaryOf({ trigger: cause, strategy, tokensBefore, tokensAfter }: Event<"compacted">): SdkBody {
  const trigger = cause === "demand" ? ("manual" as const) : ("auto" as const);
  const metadata = { trigger, cause, strategy, pre_tokens: tokensBefore, post_tokens: tokensAfter };
  return { type: "system", subtype: "compact_boundary", compact_metadata: metadata };
}

/** The start of a sub-agent. */
export function taskOf({ callId, sessionId, profile, mode, description = "" }: Event<"subagent.started">): SdkBody {
  const agent = { subagent_type: profile, is_backgrounded: mode === "background" };
  const about = { task_id: sessionId, tool_use_id: callId, description: description.trim() || profile };
  return { type: "system", subtype: "task_started", ...about, ...agent };
}

/** The end of a sub-agent. `call`: the call that started it; undefined: it belongs to an earlier run. */
export function taskEnd(
  task: string,
  call: string | undefined,
  status: "completed" | "failed",
  summary: string,
): SdkBody {
  const ofCall = call === undefined ? {} : { tool_use_id: call };
  return { type: "system", subtype: "task_notification", task_id: task, ...ofCall, status, output_file: "", summary };
}
