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

const descriptionChars = 200;

/** The start of a sub-agent. `input`: the arguments of the call that starts it. */
export function taskOf({ callId, sessionId, profile, mode }: Event<"subagent.started">, input: unknown): SdkBody {
  const args: Readonly<Record<string, unknown>> = typeof input === "object" && input !== null ? { ...input } : {};
  const [description = profile] = [args["description"], args["prompt"], args["task"]].flatMap((text) =>
    typeof text === "string" && text.trim() !== "" ? [text.trim().slice(0, descriptionChars)] : [],
  );
  const agent = { subagent_type: profile, is_backgrounded: mode === "background" };
  return { type: "system", subtype: "task_started", task_id: sessionId, tool_use_id: callId, description, ...agent };
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
