// Notices for people when the model was unreachable or refused the request; pure.
import type { Finish } from "@parley/contracts";
import type { ModelError } from "../model/provider.ts";

export function failureNotice(error: ModelError): Finish {
  const failed = (text: string): Finish => ({ state: "failed", exitReason: "error", text });
  switch (error.failure) {
    case "auth":
      return failed(
        `I cannot answer: the model's provider rejected my API key. The operator should check ${error.keyVariable ?? "ANTHROPIC_API_KEY or OPENAI_API_KEY"}.`,
      );
    case "spend_limit":
      return failed("I cannot answer: the spending limit at the model's provider has been reached.");
    case "context_overflow":
      return failed("I cannot answer: this conversation is too long for the model. Start a new one with `/new`.");
    case "rate_limit":
    case "overloaded":
      return failed(
        "I could not answer: the model's provider is still overloaded after several retries. Please try again in a few minutes.",
      );
    case "server":
    case "connection":
    case "stalled":
      return failed(
        "I could not answer: the model's provider did not respond properly after several retries. Please try again.",
      );
    case "invalid":
      return failed(`I could not answer: the model's provider rejected the request (${error.message.slice(0, 300)}).`);
    default:
      return error.failure satisfies never;
  }
}

export const stoppedByUser: Finish = { state: "cancelled", exitReason: "interrupted", text: "Stopped." };
