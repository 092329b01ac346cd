// What comes of a request for a summary: its text, or, when there is none, a note that is true of what was left out; pure.
import { textOf, type Message } from "@parley/contracts";
import type { ModelReply } from "../model/provider.ts";
import { isRequest, requestText } from "./requests.ts";
import { withoutMarkers } from "./view-messages.ts";

export type SummaryReading =
  | { status: "written"; summary: string }
  /** `reason` says what was wrong, for the log. */
  | { status: "refused"; reason: string };

/** Shorter than its headings alone would be. */
const minSummaryChars = 80;
/** A refusal is short; a summary that tells of one is longer. */
const maxRefusalChars = 400;
const refusal =
  /^\W*(?:i(?:'|’)?m (?:sorry|afraid|unable|not able)|sorry\b|i (?:can(?:no|')t|can’t|won(?:'|’)t|am (?:sorry|unable|not able))|as an ai\b)/iu;

/** Reads the model's answer; one that does not do what it was asked for is not taken for a summary. */
export function readSummary(reply: Pick<ModelReply, "parts" | "stopReason">): SummaryReading {
  const text = withoutMarkers(textOf(reply.parts));
  if (reply.stopReason === "refusal") return { status: "refused", reason: "the model declined" };
  if (reply.parts.some((part) => part.type === "tool_call"))
    return { status: "refused", reason: "the model called tools instead" };
  if (text.length < minSummaryChars)
    return { status: "refused", reason: `the answer has ${text.length} characters, fewer than ${minSummaryChars}` };
  if (text.length < maxRefusalChars && refusal.test(text))
    return { status: "refused", reason: "the answer is a refusal" };
  const cutOff = reply.stopReason === "max_tokens" || reply.stopReason === "model_context_window_exceeded";
  return { status: "written", summary: cutOff ? `${text}\n\n[The summary was cut off here.]` : text };
}

export interface FallbackSummary {
  /** Stands where the summary would have stood. */
  summary: string;
  /** What the user is told. */
  notice: string;
}

const maxRequestChars = 200;
const maxRequestsChars = 2_000;

/** The note for messages that go without a summary. `previousSummary`, if there was one, is kept in front of it. */
export function fallbackSummary(messages: readonly Message[], previousSummary: string | null = null): FallbackSummary {
  const first = messages.at(0);
  const last = messages.at(-1);
  const span = first === undefined || last === undefined ? "" : `, from ${first.createdAt} to ${last.createdAt}`;
  const count = messages.length === 1 ? "1 message" : `${messages.length} messages`;
  const requests = firstLines(messages);
  const note = [
    `An earlier part of this conversation was left out because summarising it failed: ${count}${span}. What it said is not known here; ask, or look at files and memory, before relying on it.`,
    ...(requests.length > 0 ? [`What people asked for in it, each by its first line:\n${requests.join("\n")}`] : []),
  ].join("\n\n");
  return {
    summary: previousSummary === null ? note : `${previousSummary}\n\n${note}`,
    notice: `The earlier part of this conversation could not be summarised. I go on without ${count} (nothing is deleted); tell me again what matters from there.`,
  };
}

/** The newest requests that fit, in order. */
function firstLines(messages: readonly Message[]): string[] {
  const lines: string[] = [];
  let chars = 0;
  for (const message of messages.toReversed()) {
    if (!isRequest(message)) continue;
    const line = requestText(message).trim().split("\n", 1)[0]?.slice(0, maxRequestChars).toWellFormed() ?? "";
    if (line === "") continue;
    chars += line.length;
    if (chars > maxRequestsChars) {
      lines.push("- (earlier ones are not listed)");
      break;
    }
    lines.push(`- ${line}`);
  }
  return lines.toReversed();
}
