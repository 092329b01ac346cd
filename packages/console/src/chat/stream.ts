// Joins what a model call streams: text, thinking and the arguments of tool calls. Pure. A delta says where it belongs, so a repeated
// one changes nothing. What follows a lost one is kept apart until the part before it is there.
import type { LiveEvent } from "@parley/contracts";
import type { Result } from "../api/http.ts";
import type { ChatState, LiveStep, Tail } from "./state.ts";

export type Delta = Extract<LiveEvent, { type: "text.delta" | "reasoning.delta" | "tool.input" }>;

/** The state after a delta of its running turn. */
export function addDelta(state: ChatState, delta: Delta): ChatState {
  const { turnId, step, attempt } = delta;
  const { closed } = state;
  if (closed?.turnId === turnId && step <= closed.step) return state;
  const before = state.live;
  const isSame = before?.turnId === turnId && before.step === step && before.attempt === attempt;
  if (before?.turnId === turnId && !isSame && isEarlier(delta, before)) return state;
  const live: LiveStep =
    isSame && before !== null
      ? before
      : { turnId, step, attempt, text: "", reasoning: "", calls: [], tails: new Map(), hasGap: false };
  return { ...state, live: grown(live, delta) };
}

function isEarlier({ step, attempt }: Delta, before: LiveStep): boolean {
  return step < before.step || (step === before.step && attempt < before.attempt);
}

function grown(live: LiveStep, delta: Delta): LiveStep {
  const key = delta.type === "tool.input" ? delta.callId : delta.type;
  const known = textAt(live, delta);
  const { text, tail } = joinWithTail(known, live.tails.get(key), delta.text, delta.offset ?? known.length);
  const tails = new Map(live.tails);
  if (tail === undefined) tails.delete(key);
  else tails.set(key, tail);
  const next = { ...live, tails, hasGap: tails.size > 0 };
  if (delta.type === "text.delta") return { ...next, text };
  if (delta.type === "reasoning.delta") return { ...next, reasoning: text };
  const { callId, tool } = delta;
  const call = { callId, tool, input: text };
  const isKnown = live.calls.some((each) => each.callId === callId);
  const calls = isKnown ? live.calls.map((each) => (each.callId === callId ? call : each)) : [...live.calls, call];
  return { ...next, calls };
}

function textAt(live: LiveStep, delta: Delta): string {
  if (delta.type === "text.delta") return live.text;
  if (delta.type === "reasoning.delta") return live.reasoning;
  return live.calls.find(({ callId }) => callId === delta.callId)?.input ?? "";
}

/** Joins a part, then the tail if it is next. A part behind a gap becomes the tail, or continues it. */
function joinWithTail(
  text: string,
  tail: Tail | undefined,
  part: string,
  offset: number,
): { text: string; tail?: Tail } {
  const joined = join(text, part, offset);
  if (joined === null) {
    const continued = tail === undefined ? null : join(tail.text, part, offset - tail.offset);
    return {
      text,
      tail: continued === null || tail === undefined ? { offset, text: part } : { ...tail, text: continued },
    };
  }
  if (tail === undefined || !joined.startsWith(text.slice(0, joined.length))) return { text: joined };
  const whole = join(joined, tail.text, tail.offset);
  return whole === null ? { text: joined, tail } : { text: whole };
}

/**
 * The text with the new part at its offset; null: text before the part is missing. Without an offset the part is the next one. A part
 * that contradicts the text is of a call that began again, after a takeover: what follows its offset is dropped.
 */
export function join(text: string, part: string, offset = text.length): string | null {
  if (offset > text.length || offset < 0) return null;
  return text.startsWith(part, offset) ? text : text.slice(0, offset) + part;
}

/** What a call has written so far, as deltas from its beginning. */
export function deltasOf(call: NonNullable<Result<"sessionsStreaming">["call"]>): Delta[] {
  const { text, reasoning, tools, ...at } = call;
  return [
    ...(reasoning === "" ? [] : [{ type: "reasoning.delta" as const, ...at, text: reasoning, offset: 0 }]),
    ...(text === "" ? [] : [{ type: "text.delta" as const, ...at, text, offset: 0 }]),
    ...tools.map(({ callId, tool, input }) => ({
      type: "tool.input" as const,
      ...at,
      callId,
      tool,
      text: input,
      offset: 0,
    })),
  ];
}
