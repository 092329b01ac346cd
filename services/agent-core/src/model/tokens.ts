// Estimates the size of a prompt locally; pure. Three characters per token is cautious for prose and about right for
// code and JSON. The loop multiplies it by the ratio to the usage that the provider reported last.
import type { Message, Part } from "@parley/contracts";
import { shownKind } from "./render-attachment.ts";
import type { PromptTool } from "./provider.ts";

const charsPerToken = 3;
/** Cost of the largest image that is not scaled down at Claude; other providers charge less. */
const imageTokens = 1_600;
/** A page of a document costs up to 3,000 tokens and takes about 75 KB. */
const documentTokens = 3_000;
const documentBytes = 75_000;
/** Length of the line that names an attachment. */
const noteChars = 150;

/** A third of the characters, rounded up. */
export function tokensOf(chars: number): number {
  return Math.ceil(chars / charsPerToken);
}

/** How many times the estimate the provider reported, from 0.3 to 3: a wrong report must not switch compaction off, or cause it always. */
export function tokenRatio(reported: number, estimated: number): number {
  return Math.min(3, Math.max(0.3, reported / Math.max(1, estimated)));
}

/** Size of parts in a prompt, converted to characters of text. */
export function charsOf(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + weight(part), 0);
}

export function charsOfTools(tools: readonly PromptTool[]): number {
  return tools.reduce(
    (sum, { name, description, inputSchema, examples }) =>
      sum +
      name.length +
      description.length +
      JSON.stringify(inputSchema).length +
      (examples === undefined ? 0 : JSON.stringify(examples).length),
    0,
  );
}

function weight(part: Part): number {
  switch (part.type) {
    case "text":
    case "quote":
      return part.text.length;
    case "reasoning":
      return part.raw?.length ?? part.text.length + (part.redacted?.length ?? 0);
    case "tool_call":
      return part.name.length + part.input.length;
    case "tool_result":
      return (part.attachments ?? []).reduce((sum, each) => sum + attachmentWeight(each), part.content.length);
    case "binary":
      return weightOf(part.mediaType, (part.data.length * 3) / 4);
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

/** Size of an attachment in characters of text: one that a model cannot see is a single line. */
function attachmentWeight({ mediaType, bytes }: { mediaType: string; bytes: number }): number {
  const kind = shownKind(mediaType, bytes);
  if (kind === "text") return bytes;
  return kind === "note" ? noteChars : weightOf(mediaType, bytes);
}

function weightOf(mediaType: string, bytes: number): number {
  const tokens = mediaType.startsWith("image/")
    ? imageTokens
    : Math.max(1, Math.ceil(bytes / documentBytes)) * documentTokens;
  return charsPerToken * tokens;
}

/** Tokens of messages in a prompt; monotonic in the messages. */
export type Estimate = (messages: readonly Message[]) => number;

/** Overhead per message. */
const tokensPerMessage = 4;

/** Cached: messages never change, and every call of a model estimates all messages of the view. */
const messageChars = new WeakMap<Message, number>();

function charsOfMessage(message: Message): number {
  let chars = messageChars.get(message);
  if (chars === undefined) messageChars.set(message, (chars = charsOf(message.parts)));
  return chars;
}

export function estimateTokens(messages: readonly Message[]): number {
  const chars = messages.reduce((sum, message) => sum + charsOfMessage(message), 0);
  return tokensOf(chars) + tokensPerMessage * messages.length;
}
