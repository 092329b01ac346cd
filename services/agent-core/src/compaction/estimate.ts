// How large messages are, where nobody has counted. A function of this shape is what plans are made with, so that a provider's
// own count, or an estimate held against it, can take its place.
import type { Message } from "@parley/contracts";
import { charsOf, tokensOf } from "../model/tokens.ts";

/** Tokens of messages as a model would be shown them; more messages are never fewer tokens. */
export type Estimate = (messages: readonly Message[]) => number;

/** What a message costs beside its content. */
const tokensPerMessage = 4;

export function estimateTokens(messages: readonly Message[]): number {
  const chars = messages.reduce((sum, message) => sum + charsOf(message.parts), 0);
  return tokensOf(chars) + tokensPerMessage * messages.length;
}
