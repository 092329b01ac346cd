// How large messages are, where nobody has counted. A function of this shape is what plans are made with, so that a provider's
// own count, or an estimate held against it, can take its place.
import type { Message, Part } from "@parley/contracts";
import { attachmentWeight } from "../model/tokens.ts";

/** Tokens of messages as a model would be shown them; more messages are never fewer tokens. */
export type Estimate = (messages: readonly Message[]) => number;

/** Three characters a token: on the safe side for prose, about right for code and JSON. */
const charsPerToken = 3;
/** What a message costs beside its content. */
const tokensPerMessage = 4;

export function estimateTokens(messages: readonly Message[]): number {
  let chars = 0;
  for (const message of messages) {
    for (const part of message.parts) chars += partChars(part);
  }
  return Math.ceil(chars / charsPerToken) + tokensPerMessage * messages.length;
}

function partChars(part: Part): number {
  switch (part.type) {
    case "text":
    case "reasoning":
      return part.text.length;
    case "tool_call":
      return part.name.length + part.input.length;
    case "tool_result":
      return (part.attachments ?? []).reduce((sum, each) => sum + attachmentWeight(each), part.content.length);
    case "binary":
      // A picture costs by its area, not by its bytes; an eighth is what a view has always been measured with.
      return part.data.length / 8;
    case "blob":
      return attachmentWeight(part);
    case "provider":
      return part.raw.length;
    case "finish":
      return 0;
    default:
      return part satisfies never;
  }
}
