// What a model's reply means for the turn, and when a turn has had enough; pure.
import { textOf, type ExitReason, type Finish, type Part, type ToolCall } from "@parley/contracts";
import type { ModelError, ModelReply } from "../model/provider.ts";

export type Decision =
  | { next: "tools"; calls: ToolCall[]; parts: Part[] }
  /** The model paused itself: ask again with what it has said so far. */
  | { next: "again"; parts: Part[] }
  | { next: "finish"; parts: Part[]; finish: Finish };

const silentAnswer = "(I have nothing to add.)";

/** The stop-reason branch: run tools, go on, or finish with the reason and what the user is told. */
export function decide(reply: ModelReply): Decision {
  const { parts } = reply;
  const calls = parts.flatMap((part) => (part.type === "tool_call" ? [part] : []));
  const text = textOf(parts);
  switch (reply.stopReason) {
    case "tool_use":
      return calls.length > 0 ? { next: "tools", calls, parts } : finish("end_turn", parts, text || silentAnswer);
    case "pause_turn":
      return { next: "again", parts: withoutCalls(parts) };
    case "max_tokens":
      return cutOff(parts, "max_tokens", "My answer was cut off because it reached the length limit.");
    case "model_context_window_exceeded":
      return cutOff(parts, "max_tokens", "My answer was cut off because this conversation fills the model's window.");
    case "refusal":
      return finish("refusal", withoutCalls(parts), text || "The model declined to answer this.");
    case "stop_sequence":
      return finish("stop_sequence", withoutCalls(parts), text || silentAnswer);
    case "end_turn":
    case "other":
      return finish("end_turn", withoutCalls(parts), text || silentAnswer);
    default:
      return reply.stopReason satisfies never;
  }
}

function finish(exitReason: ExitReason, parts: Part[], text: string): Decision {
  return { next: "finish", parts, finish: { state: "done", exitReason, text } };
}

/** A call in a reply that was cut off may be incomplete: it is dropped before anything is appended. */
function cutOff(parts: Part[], exitReason: ExitReason, notice: string): Decision {
  const kept = withoutCalls(parts);
  const text = textOf(kept);
  return finish(exitReason, kept, text === "" ? notice : `${text}\n\n[${notice}]`);
}

function withoutCalls(parts: Part[]): Part[] {
  return parts.filter((part) => part.type !== "tool_call");
}

export interface Limits {
  /** 0 = no limit. */
  maxIterations: number;
  maxToolCalls: number;
  maxTurnMs: number;
}

export interface Progress {
  modelSteps: number;
  toolCalls: number;
  elapsedMs: number;
}

/** The end of a turn that has reached a limit, or undefined. No limit ends in silence. */
export function limitReached(limits: Limits, progress: Progress): Finish | undefined {
  const over = (limit: number, value: number) => limit > 0 && value >= limit;
  const stopped = (what: string): Finish => ({
    state: "failed",
    exitReason: "max_turns",
    text: `I stopped here: ${what}. Say "go on" if I should continue.`,
  });
  if (over(limits.maxIterations, progress.modelSteps))
    return stopped(`this took ${progress.modelSteps} steps, the limit for one request`);
  if (over(limits.maxToolCalls, progress.toolCalls))
    return stopped(`I used tools ${progress.toolCalls} times, the limit for one request`);
  if (over(limits.maxTurnMs, progress.elapsedMs)) {
    return stopped(`this took ${Math.round(progress.elapsedMs / 60_000)} minutes, the limit for one request`);
  }
  return undefined;
}

/** What a person is told when the model could not be reached or refused the request. */
export function failureNotice(error: ModelError): Finish {
  const failed = (text: string): Finish => ({ state: "failed", exitReason: "error", text });
  switch (error.failure) {
    case "auth":
      return failed(
        "I cannot answer: the model's provider refuses my API key. Whoever runs me should check ANTHROPIC_API_KEY (or OPENAI_API_KEY).",
      );
    case "spend_limit":
      return failed("I cannot answer: the spending limit at the model's provider is reached.");
    case "context_overflow":
      return failed("I cannot answer: this conversation has become too long for the model.");
    case "rate_limit":
    case "overloaded":
      return failed(
        "I could not answer: the model's provider is overloaded and stayed so. Please try again in a few minutes.",
      );
    case "server":
    case "connection":
    case "stalled":
      return failed(
        "I could not answer: the model's provider did not respond properly, also after several tries. Please try again.",
      );
    case "invalid":
      return failed(`I could not answer: the model's provider refused the request (${error.message.slice(0, 300)}).`);
    default:
      return error.failure satisfies never;
  }
}
