// The parts of a turn as a waterfall for a terminal. Pure.

import type { TraceSpan } from "@parley/contracts";

import type { Paint } from "../io/io.ts";
import { localTime, milliseconds, oneLine, table } from "./format.ts";

export interface Trace {
  readonly turnId: string;
  readonly sessionId: string;
  readonly state: string;
  readonly receivedAt: string;
  readonly finishedAt: string | null;
  readonly spans: readonly TraceSpan[];
}

const barWidth = 40;
const nameWidth = 32;

/** One line per part: its name, its place in the time of the turn, its duration. `now`: epoch milliseconds, for parts that have not ended. */
export function traceText(
  { turnId, sessionId, state, receivedAt, finishedAt, spans }: Trace,
  now: number,
  paint: Paint,
): string {
  const start = Date.parse(receivedAt);
  const endOf = ({ endedAt }: Pick<TraceSpan, "endedAt">) => (endedAt === null ? now : Date.parse(endedAt));
  const end = Math.max(start + 1, ...spans.map(endOf));
  const rows = spans.map((span) => {
    const [from, to] = [Date.parse(span.startedAt), endOf(span)];
    const took = `${span.exact ? "" : "≤ "}${milliseconds(Math.max(0, to - from))}`;
    return [nameOf(span), bar((from - start) / (end - start), (to - start) / (end - start)), took, detailOf(span)];
  });
  const total = finishedAt === null ? "not ended" : `ended after ${milliseconds(Date.parse(finishedAt) - start)}`;
  const head = `turn ${turnId} of session ${sessionId}\n${localTime(receivedAt)}, ${state}, ${total}`;
  return `${paint("bold", head)}\n\n${table(rows)}`;
}

function nameOf({ kind, name }: TraceSpan): string {
  return oneLine(name === "" ? kind : `${kind} ${name}`, nameWidth);
}

/** `from` and `to`: shares of the whole time, 0 to 1. */
function bar(from: number, to: number): string {
  const first = Math.min(barWidth - 1, Math.floor(Math.max(0, from) * barWidth));
  const length = Math.max(1, Math.round(Math.min(1, to) * barWidth) - first);
  return `│${" ".repeat(first)}${"█".repeat(length)}${" ".repeat(Math.max(0, barWidth - first - length))}│`;
}

function detailOf({ kind, state, endedAt, inputTokens, outputTokens }: TraceSpan): string {
  if (kind === "model") return inputTokens === undefined ? "" : `${inputTokens} → ${outputTokens ?? 0} tokens`;
  return kind === "queue" || (state === "done" && endedAt !== null) ? "" : state;
}
