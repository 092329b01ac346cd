// A running turn's part of its session's log: read from the view, and written in the store's format; pure.
import { createHash } from "node:crypto";
import type {
  DurableEvent,
  Finish,
  Message,
  OutputOf,
  Part,
  store,
  ToolCall,
  ToolResult,
  ToolStep,
  Usage,
} from "@parley/contracts";
import type { ToolSource } from "../policy/tool-traits.ts";

/** The turns of a session are sequential, so the messages of the newest one are last. */
export function messagesOf(turnId: string, messages: readonly Message[]): Message[] {
  return messages.slice(messages.findLastIndex((message) => message.turnId !== turnId) + 1);
}

/** Longer results are replaced by their hash: guards compare results and read none. */
const maxKeptCharacters = 64;

/**
 * What remains of a running turn's messages when its view releases them: enough for the guards, the texts it has sent and the answer it
 * has begun, without the content of results and reasoning.
 */
export function releasedMessages(messages: readonly Message[]): Message[] {
  return messages.map((message) => ({
    ...message,
    parts: message.parts.flatMap((part): Part[] => {
      if (part.type === "reasoning") return [];
      if (part.type !== "tool_result" || part.content.length <= maxKeptCharacters) return [part];
      return [{ ...part, content: createHash("sha256").update(part.content).digest("hex") }];
    }),
  }));
}

/** Both parts of a turn's messages in order. `earlier` may come after the protected beginning of a view. */
export function inOrder(earlier: readonly Message[], shown: readonly Message[]): Message[] {
  if (earlier.length === 0) return [...shown];
  return [...earlier, ...shown].sort((one, other) => one.seq - other.seq);
}

/** Messages without an answer: those after the last assistant message. */
export function unansweredMessages(messages: readonly Message[]): Message[] {
  return messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1);
}

/** The parts of a finished answer, with the reason for its end and the stop sequence that it reached. `at`: ISO 8601. */
export function closedParts(parts: readonly Part[], reason: string, at: string, stopSequence?: string): Part[] {
  return [...parts, { type: "finish", reason, ...(stopSequence === undefined ? {} : { stopSequence }), at }];
}

/** A call as committed before it runs: name, arguments and effect class. */
type Intent = Pick<ToolStep, "callId" | "tool" | "class" | "input">;

export function toolIntent({ id, name, input }: ToolCall, toolbox: ToolSource): Intent {
  // The result for an unknown tool lists the valid names, so the call needs a step like any other.
  return { callId: id, tool: name, class: toolbox.find(name)?.descriptor.class ?? "pure", input };
}

export function toolStep(turnId: string, n: number, intent: Intent): ToolStep {
  return { turnId, n, ...intent, state: "intended", result: null, runner: null, startedAt: null };
}

/** The content of a commit, as it was sent. */
interface Written {
  turnId: string;
  results: readonly ToolResult[];
  parts: Part[];
  model: string;
  note: Part[];
  finish: Finish | null;
  tainted: boolean;
  /** Of the model call. */
  callUsage: Usage;
}

/** The events of a commit in log order, built here because the store returns their positions only. */
export function committedEvents(
  { turnId, results, parts, model, note, finish, tainted, callUsage }: Written,
  { resultsSeq, messageSeq, noteSeq, finishSeq, usage, cost, at }: Positions,
): DurableEvent[] {
  const common = { turnId, createdAt: at, ...(tainted ? { tainted } : {}) };
  const messages: Message[] = [{ seq: messageSeq, role: "assistant", parts, model, ...common }];
  if (resultsSeq !== null) {
    messages.unshift({ seq: resultsSeq, role: "tool", parts: [...results], model: null, ...common });
  }
  if (noteSeq !== null) messages.push({ seq: noteSeq, role: "user", parts: note, model: null, ...common });
  const events: DurableEvent[] = messages.map((message) => ({
    type: "message",
    seq: message.seq,
    message,
    ...(message.role === "assistant" ? { usage: callUsage } : {}),
  }));
  if (finish !== null && finishSeq !== null) {
    events.push({ type: "turn.finished", seq: finishSeq, turnId, ...finish, usage, cost });
  }
  return events;
}

type Positions = Pick<
  OutputOf<typeof store.stepCommit>,
  "resultsSeq" | "messageSeq" | "noteSeq" | "finishSeq" | "usage" | "cost" | "at"
>;
