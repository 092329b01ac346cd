// Estimates the tokens of messages. Planning takes a function of this type, so that a provider's count or a calibrated estimate can
// replace it.
import type { Message } from "@parley/contracts";
import { charsOf, tokensOf } from "../model/tokens.ts";

/** Tokens of messages in a prompt; monotonic in the messages. */
export type Estimate = (messages: readonly Message[]) => number;

/** Overhead per message. */
const tokensPerMessage = 4;

export function estimateTokens(messages: readonly Message[]): number {
  const chars = messages.reduce((sum, message) => sum + charsOf(message.parts), 0);
  return tokensOf(chars) + tokensPerMessage * messages.length;
}
