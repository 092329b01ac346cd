// A running turn's part of its session's log: read out of the view, and written as the store will hold it; pure.
import type { Message, Part, ToolCall, ToolStep } from "@parley/contracts";
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
export type Intent = Pick<ToolStep, "callId" | "tool" | "class" | "input">;

export function intentOf({ id, name, input }: ToolCall, toolbox: Pick<Toolbox, "find">): Intent {
  // An unknown tool is answered with the names of the valid ones, and that is a result like any other.
  return { callId: id, tool: name, class: toolbox.find(name)?.descriptor.class ?? "pure", input };
}

export function stepOf(turnId: string, n: number, intent: Intent): ToolStep {
  return { turnId, n, ...intent, state: "intended", result: null, runner: null, startedAt: null };
}
