// A running turn's part of its session's log: read out of the view, and written as the store will hold it; pure.
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
} from "@parley/contracts";
import type { Toolbox } from "./toolbox.ts";

/** A session's turns follow one another, so the newest one's messages are the last. */
export function messagesOf(turnId: string, messages: readonly Message[]): Message[] {
  return messages.slice(messages.findLastIndex((message) => message.turnId !== turnId) + 1);
}

/** What nobody has answered yet: the messages behind the last answer. */
export function unansweredIn(messages: readonly Message[]): Message[] {
  return messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1);
}

/** An answer as it is kept: what was written, and how it ended. `at`: ISO 8601. */
export function closed(parts: readonly Part[], reason: string, at: string): Part[] {
  return [...parts, { type: "finish", reason, at }];
}

/** A call that is committed to: what is to be run under which name, and how it may be repeated. */
type Intent = Pick<ToolStep, "callId" | "tool" | "class" | "input">;

export function intentOf({ id, name, input }: ToolCall, toolbox: Pick<Toolbox, "find">): Intent {
  // An unknown tool is answered with the names of the valid ones, and that is a result like any other.
  return { callId: id, tool: name, class: toolbox.find(name)?.descriptor.class ?? "pure", input };
}

export function stepOf(turnId: string, n: number, intent: Intent): ToolStep {
  return { turnId, n, ...intent, state: "intended", result: null, runner: null, startedAt: null };
}

/** What a commit has written, as it was sent. */
interface Written {
  turnId: string;
  results: ToolResult[];
  parts: Part[];
  model: string;
  note: Part[];
  finish: Finish | null;
  tainted: boolean;
}

/** The events of a commit, in the order of the log: the store answers with their positions alone. */
export function committedEvents(
  { turnId, results, parts, model, note, finish, tainted }: Written,
  { resultsSeq, messageSeq, noteSeq, finishSeq, usage, cost, at }: Positions,
): DurableEvent[] {
  const common = { turnId, createdAt: at, ...(tainted ? { tainted } : {}) };
  const messages: Message[] = [{ seq: messageSeq, role: "assistant", parts, model, ...common }];
  if (resultsSeq !== null) {
    messages.unshift({ seq: resultsSeq, role: "tool", parts: results, model: null, ...common });
  }
  if (noteSeq !== null) messages.push({ seq: noteSeq, role: "user", parts: note, model: null, ...common });
  const events: DurableEvent[] = messages.map((message) => ({ type: "message", seq: message.seq, message }));
  if (finish !== null && finishSeq !== null) {
    events.push({ type: "turn.finished", seq: finishSeq, turnId, ...finish, usage, cost });
  }
  return events;
}

type Positions = Pick<
  OutputOf<typeof store.stepCommit>,
  "resultsSeq" | "messageSeq" | "noteSeq" | "finishSeq" | "usage" | "cost" | "at"
>;
