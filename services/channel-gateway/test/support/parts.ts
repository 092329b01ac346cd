// Sends answers through an adapter as the host does, message by message, without a store.
import type { ReplyAddress, TextLimits } from "@parley/contracts";
import type { ChannelAdapter, OutboundPart, SendOutcome } from "../../src/channels/channel.ts";
import { AnswerParts } from "../../src/channels/text/parts.ts";

/** The first message of an answer. */
export function firstPart(limits: TextLimits, address: ReplyAddress, text: string): OutboundPart {
  const part = new AnswerParts(limits).at("answer", text, 0);
  return { address, text: part?.rendered ?? null, idempotencyKey: "turn-1:0", attempts: 0 };
}

/** Sends all messages of an answer until one is not sent; returns the outcome of each. */
export async function sendAnswer(
  adapter: ChannelAdapter,
  address: ReplyAddress,
  text: string,
  signal: AbortSignal,
): Promise<SendOutcome[]> {
  const parts = new AnswerParts(adapter.capabilities.text);
  const outcomes: SendOutcome[] = [];
  const { replyToId: _, ...later } = address;
  for (let position: number | null = 0; position !== null;) {
    const to = position === 0 ? address : later;
    const part = parts.at("answer", text, position, adapter.maxLength?.(to));
    if (part === null) break;
    const message = { address: to, text: part.rendered, idempotencyKey: `turn-1:0-${position}`, attempts: 0 };
    const outcome = await adapter.send(message, signal);
    outcomes.push(outcome);
    if (outcome.state !== "sent") break;
    position = part.next;
  }
  return outcomes;
}

/** The texts of all messages of an answer. */
export function partsOf(limits: TextLimits, text: string): string[] {
  const parts = new AnswerParts(limits);
  const texts: string[] = [];
  for (let position: number | null = 0; position !== null;) {
    const part = parts.at("answer", text, position);
    if (part === null) break;
    texts.push(part.rendered.text);
    position = part.next;
  }
  return texts;
}
