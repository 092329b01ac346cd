// Derives the messages of a prompt from a session's log and view record; pure. For one record the result only grows at its end, which
// keeps the provider's cache and the signatures of reasoning valid until the next compaction.
import type { Message, Part, ToolResult, ViewRecord } from "@parley/contracts";
import { elideMiddle } from "@parley/kit";

const summaryBegin = "[CONTEXT SUMMARY]";
const summaryEnd = "[END CONTEXT SUMMARY]";
const todosBegin = "[TO DO]";

/**
 * The view: the protected beginning (without old reasoning), a placeholder for the removed messages, and the messages from `fromSeq`
 * on. `messages`: the log in order; removed messages may be missing. If `record` is null, the view is the entire log.
 */
export function viewMessages(record: ViewRecord | null, messages: readonly Message[]): Message[] {
  if (record === null) return [...messages];
  const head = messages.filter((message) => message.seq <= record.keepFirstTo);
  const tail = messages.filter((message) => message.seq > record.keepFirstTo && message.seq >= record.fromSeq);
  return [
    ...head.map((message) => withoutOldReasoning(record, message)),
    ...placeholderMessages(record),
    ...tail.map((message) => reduced(record, message)),
  ];
}

/** A user message without a sender that is not part of the log: position 0, no turn, no time. */
export function systemNote(...texts: string[]): Message {
  return {
    seq: 0,
    role: "user",
    turnId: "",
    parts: texts.map((text): Part => ({ type: "text", text })),
    model: null,
    createdAt: "",
  };
}

/** Whether the message is the placeholder for removed messages. */
export function isPlaceholder(message: Message): boolean {
  return message.seq === 0;
}

/** The message without the summary and the to-do list, which are both regenerated. */
export function withoutSummary(message: Message): Message {
  if (!isPlaceholder(message)) return message;
  const isMade = (text: string) => text.startsWith(summaryBegin) || text.startsWith(todosBegin);
  const parts = message.parts.filter((part) => part.type !== "text" || !isMade(part.text));
  return { ...message, parts: parts };
}

/** The text without the markers between which it will be placed. */
export function withoutMarkers(text: string): string {
  return text.replaceAll(summaryBegin, "").replaceAll(summaryEnd, "").trim();
}

function placeholderMessages(record: ViewRecord): Message[] {
  if (record.fromSeq === 0) return [];
  const texts =
    record.summary === null
      ? ["[Earlier messages of this conversation are omitted.]"]
      : [`${summaryBegin}\n${record.summary}\n${summaryEnd}`];
  if (record.summary !== null && record.strategy === "trim")
    texts.push("[Messages between this summary and the following text are omitted.]");
  if (record.todos !== undefined) texts.push(`${todosBegin} Your current to-do list:\n${record.todos}`);
  if (record.lastRequest !== null) texts.push(`The last request, verbatim:\n\n${record.lastRequest}`);
  return [systemNote(...texts)];
}

/** Applies to the protected beginning too: reasoning signatures cover system prompt and tools, which a compaction may change. */
function withoutOldReasoning(record: ViewRecord, message: Message): Message {
  const bound = message.role === "assistant" && message.seq < (record.madeAtSeq ?? 0);
  return bound ? { ...message, parts: message.parts.filter((part) => part.type !== "reasoning") } : message;
}

function reduced(record: ViewRecord, message: Message): Message {
  if (message.role !== "tool") return withoutOldReasoning(record, message);
  const cleared = message.seq < record.clearedBefore;
  if (!cleared && record.maxResultChars === undefined) return message;
  return {
    ...message,
    parts: message.parts.map((part) => (part.type === "tool_result" ? lessResult(record, part, cleared) : part)),
  };
}

function lessResult(record: ViewRecord, result: ToolResult, cleared: boolean): ToolResult {
  const { content } = result;
  if (cleared) {
    const placeholder = `[The result of ${result.name}, ${content.length} characters, was removed.]`;
    return placeholder.length < content.length ? { ...result, content: placeholder } : result;
  }
  return { ...result, content: elideMiddle(content, record.maxResultChars ?? content.length) };
}
