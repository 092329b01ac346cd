// The bars of a turn, from its recorded times. Pure.
import type { Result } from "../api/http.ts";
import { compact, duration } from "../parts/format.ts";

type Trace = Result<"turnsTrace">;
type Span = Trace["spans"][number];

export interface Bar {
  kind: Span["kind"] | "failed";
  label: string;
  detail: string;
  /** Milliseconds since the first input was stored. */
  fromMs: number;
  toMs: number;
  /** What was stored at its end: the claim of the queued message, or the result of a model call. Null: nothing, or not yet. */
  mark: "claimed" | "committed" | null;
}

const labels = { queue: "Queue", approval: "Approval: ", send: "Delivery to ", model: "", tool: "" } as const;
const marks = { queue: "claimed", model: "committed" } as const;
const badStates = new Set(["failed", "unknown", "cancelled", "denied", "expired", "dropped"]);

/** The bars in order, and the whole time. `nowMs` (milliseconds since 1970) ends what still runs. */
export function waterfall({ receivedAt, finishedAt, spans }: Trace, nowMs: number): { bars: Bar[]; totalMs: number } {
  const beginMs = Date.parse(receivedAt);
  const bars = spans.map((span): Bar => {
    const { kind, name, state, startedAt, endedAt, exact, inputTokens, outputTokens = 0, firstTokenMs } = span;
    const fromMs = Date.parse(startedAt) - beginMs;
    const toMs = (endedAt === null ? nowMs : Date.parse(endedAt)) - beginMs;
    const tokens = inputTokens === undefined ? [] : [`${compact(inputTokens)} → ${compact(outputTokens)} tokens`];
    const mark = endedAt !== null && (kind === "queue" || kind === "model") ? marks[kind] : null;
    const notes = [
      ...(state === "done" ? [] : [state]),
      ...tokens,
      ...(firstTokenMs === undefined ? [] : [`first token after ${duration(firstTokenMs)}`]),
      ...(exact ? [] : ["ended at that time or earlier"]),
      ...(mark === null ? [] : [`${mark} at ${duration(toMs)}`]),
    ];
    return {
      kind: badStates.has(state) ? "failed" : kind,
      label: `${labels[kind]}${name}`,
      detail: notes.join(", "),
      fromMs,
      toMs: Math.max(fromMs, toMs),
      mark,
    };
  });
  const endMs = (finishedAt === null ? nowMs : Date.parse(finishedAt)) - beginMs;
  return { bars, totalMs: Math.max(endMs, 1, ...bars.map(({ toMs }) => toMs)) };
}
