// Joins the streamed text of a model call. Pure. A delta says where it belongs, so a repeated one changes nothing, and a lost one is
// noticed instead of joining text that does not belong together.
import type { LiveEvent } from "@parley/contracts";
import type { ChatState, LiveStep } from "./state.ts";

type Delta = Extract<LiveEvent, { type: "text.delta" | "reasoning.delta" }>;

/** The state after a delta of its running turn. */
export function addDelta(state: ChatState, delta: Delta): ChatState {
  const { turnId, step, attempt } = delta;
  const { closed } = state;
  if (closed?.turnId === turnId && step <= closed.step) return state;
  const before = state.live;
  const isSame = before?.turnId === turnId && before.step === step && before.attempt === attempt;
  if (before?.turnId === turnId && !isSame && isEarlier(delta, before)) return state;
  const live: LiveStep =
    isSame && before !== null ? before : { turnId, step, attempt, text: "", reasoning: "", hasGap: false };
  const field = delta.type === "text.delta" ? "text" : "reasoning";
  const joined = join(live[field], delta.text, delta.offset);
  if (joined === null) return { ...state, live: { ...live, hasGap: true } };
  // A text from the beginning that covers what is shown fills every gap.
  const fills = delta.offset === 0 && joined.length === delta.text.length && field === "text";
  return { ...state, live: { ...live, [field]: joined, hasGap: fills ? false : live.hasGap } };
}

function isEarlier({ step, attempt }: Delta, before: LiveStep): boolean {
  return step < before.step || (step === before.step && attempt < before.attempt);
}

/**
 * The text with the new part at its offset; null: text before the part is missing. Without an offset the part is the next one. A part
 * that contradicts the text is of a call that began again, after a takeover: what follows its offset is dropped.
 */
export function join(text: string, part: string, offset = text.length): string | null {
  if (offset > text.length) return null;
  return text.startsWith(part, offset) ? text : text.slice(0, offset) + part;
}
