// Builds the prompt from a session's messages; pure. The result is always valid, also after cancellations and crashes:
// it starts with a user message, roles alternate, and each tool call is followed by exactly one result.
import { textOf, type Message, type Part, type ToolCall, type ToolResult } from "@parley/contracts";
import type { PromptMessage } from "../model/provider.ts";
import { earlierText, messageHeader, quotedText, type MessageHeaderOptions } from "./message-header.ts";
import { originalCall } from "./indirect-calls.ts";

/** Result of a call whose real result was never recorded. */
const lostResult = "Interrupted: the outcome of this call is unknown. Check before you repeat it.";

/** Inserted when a conversation would start with an assistant message. */
const leftOut = "[Earlier messages of this conversation are left out.]";

export function buildPrompt(messages: readonly Message[], headings?: MessageHeaderOptions): PromptMessage[] {
  const prompt: PromptMessage[] = [];
  let open: readonly ToolCall[] = [];

  const push = (role: PromptMessage["role"], parts: readonly Part[]) => {
    if (parts.length === 0) return;
    const last = prompt.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else prompt.push({ role, parts: [...parts] });
  };
  /** Adds a result for every open call, in the order of the calls. */
  const answer = (results?: ReadonlyMap<string, ToolResult>) => {
    if (open.length === 0) return;
    push(
      "user",
      open.map(
        (call) =>
          results?.get(call.id) ?? {
            type: "tool_result",
            id: call.id,
            name: call.name,
            content: lostResult,
            isError: true,
          },
      ),
    );
    open = [];
  };

  // The start of a long turn may be missing from the view; its later messages are still needed.
  if (messages.length > 0 && messages[0]?.role !== "user") push("user", [{ type: "text", text: leftOut }]);
  for (const message of messages) {
    if (message.role === "tool") {
      // The API refuses results whose call was removed.
      answer(contentOf(message).results);
      continue;
    }
    answer();
    if (message.role === "user") push("user", messageHeader(message, headings));
    const { parts, calls } = contentOf(message);
    push(message.role, parts);
    open = calls;
  }
  answer();
  return prompt.map((message) =>
    message.role === "user" ? { ...message, parts: resultsFirst(message.parts) } : message,
  );
}

/** What a message adds to a prompt. */
interface Content {
  parts: readonly Part[];
  calls: readonly ToolCall[];
  /** By call. */
  results?: ReadonlyMap<string, ToolResult>;
}

/** Cached: messages never change, and every request contains all messages of the view. */
const contents = new WeakMap<Message, Content>();

function contentOf(message: Message): Content {
  let content = contents.get(message);
  if (content === undefined) contents.set(message, (content = contentIn(message)));
  return content;
}

function contentIn({ role, parts }: Message): Content {
  switch (role) {
    case "tool": {
      const results = parts.flatMap((part) => (part.type === "tool_result" ? [[part.id, part] as const] : []));
      return { parts: [], calls: [], results: new Map(results) };
    }
    case "user":
      return { parts: userParts(parts), calls: [] };
    case "assistant":
      if (!hasContent(parts)) return { parts: [], calls: [] };
      return { parts: assistantParts(parts), calls: parts.filter((part) => part.type === "tool_call") };
    default:
      return role satisfies never;
  }
}

/** A user's parts. The API refuses whitespace-only text, so a placeholder replaces it. */
function userParts(parts: readonly Part[]): Part[] {
  const kept = parts.filter((part) => part.type !== "finish" && (part.type !== "text" || part.text.trim() !== ""));
  if (kept.length === 0) return [{ type: "text", text: "(an empty message)" }];
  const quotes = kept.filter((part) => part.type === "quote");
  const earlier = quotes.filter((quote) => quote.earlier === true);
  const said = kept.flatMap((part): Part[] => {
    if (part.type !== "quote") return [part];
    return part.earlier === true ? [] : [{ type: "text", text: quotedText(part) }];
  });
  return earlier.length === 0 ? said : [{ type: "text", text: earlierText(earlier) }, ...said];
}

/** The API refuses an assistant message that contains only reasoning. */
function hasContent(parts: readonly Part[]): boolean {
  return parts.some(
    (part) =>
      (part.type === "text" && part.text.trim() !== "") || part.type === "tool_call" || part.type === "provider",
  );
}

/** As the model wrote it, without whitespace-only text, which the API refuses. */
function assistantParts(parts: readonly Part[]): Part[] {
  return parts
    .filter((part) => part.type !== "finish" && (part.type !== "text" || part.text.trim() !== ""))
    .map(originalCall);
}

/** The API requires tool results before all other parts of a message. */
function resultsFirst(parts: Part[]): Part[] {
  const isResult = ({ type }: Part) => type === "tool_result";
  const others = parts.findIndex((part) => !isResult(part));
  if (others === -1 || !parts.some((part, index) => index > others && isResult(part))) return parts;
  return [...parts.filter(isResult), ...parts.filter((part) => !isResult(part))];
}

/**
 * The history for `context.history = "text_only"`: people's messages and the last answer of each past turn. The running
 * turn is kept whole.
 */
export function withoutToolTraffic(messages: readonly Message[], turnId: string): Message[] {
  return messages.flatMap((message, index): Message[] => {
    if (message.turnId === turnId || message.role === "user") return [message];
    const answers = message.role === "assistant" && !message.parts.some((part) => part.type === "tool_call");
    const next = messages[index + 1];
    const isLast = next === undefined || next.turnId !== message.turnId || next.role === "user";
    if (!answers || !isLast || textOf(message.parts) === "") return [];
    return [{ ...message, parts: message.parts.filter((part) => part.type === "text" || part.type === "finish") }];
  });
}
