// Computes possible and configured cut points of a conversation; pure. A cut is the index of the first retained message. It never
// precedes a tool message, so that a call and its results are retained or removed together.
import type { CompactionSettings, Message } from "@parley/contracts";
import type { Estimate } from "../model/tokens.ts";

/**
 * The latest possible cut. It retains at least one message, and all messages of the running turn that the model has not answered yet,
 * with their calls. `turnId`: the running turn, null between turns.
 */
export function openStepStart(messages: readonly Message[], turnId: string | null): number {
  let start = messages.length - 1;
  const unanswered = (index: number) => messages[index]?.turnId === turnId && messages[index]?.role !== "assistant";
  while (start > 0 && unanswered(start)) {
    const before = messages[start - 1];
    if (before?.turnId !== turnId || (before.role === "assistant" && !callsTools(before))) break;
    start -= 1;
  }
  return blockStart(messages, start);
}

/** The end of the first `count` messages including the results of their calls; at most `latest`. */
export function protectedEnd(messages: readonly Message[], count: number, latest: number): number {
  let end = Math.min(count, latest);
  while (end < latest && messages[end]?.role === "tool") end += 1;
  return end;
}

/**
 * The cut that the settings require: it retains the longest of `keep_last` messages, `keep_last_turns` turns, and the messages that
 * fit `budgetTokens`. 0 if that is everything.
 */
export function retainedStart(
  messages: readonly Message[],
  settings: CompactionSettings,
  options: { latest: number; budgetTokens: number; estimate: Estimate },
): number {
  const start = Math.min(
    options.latest,
    messages.length - settings.keep_last,
    turnsStart(messages, settings.keep_last_turns),
    budgetStart(messages, options.budgetTokens, options.estimate),
  );
  return blockStart(messages, Math.max(0, start));
}

/** Moves a cut back until it does not precede a tool message. */
export function blockStart(messages: readonly Message[], index: number): number {
  let start = index;
  while (start > 0 && messages[start]?.role === "tool") start -= 1;
  return start;
}

function turnsStart(messages: readonly Message[], turns: number): number {
  let start = messages.length;
  for (let left = turns; left > 0 && start > 0; left--) {
    const turnId = messages[start - 1]?.turnId;
    while (start > 0 && messages[start - 1]?.turnId === turnId) start -= 1;
  }
  return start;
}

function budgetStart(messages: readonly Message[], budgetTokens: number, estimate: Estimate): number {
  let start = messages.length;
  let left = budgetTokens;
  while (start > 0) {
    left -= estimate(messages.slice(start - 1, start));
    if (left < 0) break;
    start -= 1;
  }
  return start;
}

function callsTools(message: Message): boolean {
  return message.parts.some((part) => part.type === "tool_call");
}
