// How large a prompt is, without asking anybody; pure. Three characters a token is on the cautious side for prose and about right
// for code and JSON; what the provider reported last is better, and counts where it is there.
import type { Part, Usage } from "@parley/contracts";
import { shownKind } from "./attachments.ts";
import { promptTokens } from "./prices.ts";
import type { PromptMessage, PromptTool } from "./provider.ts";

const charsPerToken = 3;
/** What the largest image that is not scaled down costs at Claude; others charge less. */
const imageTokens = 1_600;
/** A page of a document costs up to 3,000 tokens, and takes some 75 KB. */
const documentTokens = 3_000;
const documentBytes = 75_000;
/** The line that names an attachment. */
const noteChars = 150;

/** A third of the characters, rounded up. */
export function tokensOf(chars: number): number {
  return Math.ceil(chars / charsPerToken);
}

export interface PromptSize {
  /** Of the newest model call in this conversation, while nothing before it has changed; null: there is none. */
  lastUsage: Usage | null;
  /** Characters of what was appended behind that call's answer (`charsOf`). */
  newChars: number;
  /** Characters of all messages; counts only without `lastUsage`. */
  messageChars: number;
  systemChars: number;
  /** `charsOfTools`; counts only without `lastUsage`, like the system prompt: the reported prompt has both. */
  toolChars: number;
}

/** Tokens of the next prompt. */
export function estimatePrompt(size: PromptSize): number {
  const { lastUsage } = size;
  // Servers that report nothing of the prompt report zero.
  if (lastUsage === null || promptTokens(lastUsage) === 0) {
    return tokensOf(size.systemChars + size.toolChars + size.messageChars);
  }
  return promptTokens(lastUsage) + lastUsage.outputTokens + tokensOf(size.newChars);
}

/** What parts weigh in a prompt, as if they were all text. */
export function charsOf(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + weight(part), 0);
}

export function charsOfMessages(messages: readonly PromptMessage[]): number {
  return messages.reduce((sum, message) => sum + charsOf(message.parts), 0);
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
      return part.text.length;
    case "reasoning":
      return part.text.length + (part.redacted?.length ?? 0);
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

/** Of an attachment, as if it were text: what a model cannot see is a line that says so. */
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
