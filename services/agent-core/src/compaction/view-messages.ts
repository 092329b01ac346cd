// From a session's log and its view record to the messages a prompt is made of; pure. Under one record the result only grows at
// its end: that is what keeps the provider's cache, and the signatures of reasoning, valid until the next compaction.
import type { Message, Part, ToolResult, ViewRecord } from "@parley/contracts";
import { clip } from "./clip.ts";

const summaryBegin = "[CONTEXT SUMMARY]";
const summaryEnd = "[END CONTEXT SUMMARY]";
const todosBegin = "[TO DO]";

/**
 * What is shown: the protected beginning as it is (but for reasoning), what stands for the messages that are not shown, the
 * messages from `fromSeq` on. `messages` are the log's, in order; those not shown may be missing. Null: the whole log is shown.
 */
export function viewMessages(record: ViewRecord | null, messages: readonly Message[]): Message[] {
  if (record === null) return [...messages];
  const head = messages.filter((message) => message.seq <= record.keepFirstTo);
  const tail = messages.filter((message) => message.seq > record.keepFirstTo && message.seq >= record.fromSeq);
  return [
    ...head.map((message) => withoutOldReasoning(record, message)),
    ...standIn(record),
    ...tail.map((message) => reduced(record, message)),
  ];
}

/** A user message that nobody sent and that stands in no log: position 0, no turn, no time. */
export function loopNote(...texts: string[]): Message {
  return {
    seq: 0,
    role: "user",
    turnId: "",
    parts: texts.map((text): Part => ({ type: "text", text })),
    model: null,
    createdAt: "",
  };
}

/** True of the message that stands for others. */
export function isStandIn(message: Message): boolean {
  return message.seq === 0;
}

/** What a message says beside a summary and the list of what is to be done, which are both made anew. */
export function withoutSummary(message: Message): Message {
  if (!isStandIn(message)) return message;
  const isMade = (text: string) => text.startsWith(summaryBegin) || text.startsWith(todosBegin);
  const beside = message.parts.filter((part) => part.type !== "text" || !isMade(part.text));
  return { ...message, parts: beside };
}

/** Takes the markers out of a text that shall stand between them. */
export function withoutMarkers(text: string): string {
  return text.replaceAll(summaryBegin, "").replaceAll(summaryEnd, "").trim();
}

function standIn(record: ViewRecord): Message[] {
  if (record.fromSeq === 0) return [];
  const texts =
    record.summary === null
      ? ["[Earlier messages of this conversation are left out.]"]
      : [`${summaryBegin}\n${record.summary}\n${summaryEnd}`];
  if (record.summary !== null && record.strategy === "trim")
    texts.push("[Messages between this summary and what follows are left out.]");
  if (record.todos !== undefined) texts.push(`${todosBegin} Your list, as it stood:\n${record.todos}`);
  if (record.lastRequest !== null) texts.push(`The last request, word for word:\n\n${record.lastRequest}`);
  return [loopNote(...texts)];
}

/** Also of the protected beginning: a compaction lets system prompt and tools be made anew, which its signatures cover too. */
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
    const placeholder = `[The result of ${result.name}, ${content.length} characters, is no longer shown.]`;
    return placeholder.length < content.length ? { ...result, content: placeholder } : result;
  }
  return { ...result, content: clip(content, record.maxResultChars ?? content.length) };
}
