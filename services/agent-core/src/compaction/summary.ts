// Validates the model's summary, and builds a fallback note if there is none; pure.
import { pluralize } from "@parley/kit";
import { textOf, type Message } from "@parley/contracts";
import type { ModelReply } from "../model/provider.ts";
import { isUserRequest, requestText } from "./user-requests.ts";
import { withoutMarkers } from "./view-messages.ts";

export type SummaryReading =
  | { status: "written"; summary: string }
  /** `reason`: the problem, for the log. */
  | { status: "refused"; reason: string };

/** Shorter than the required headings alone. */
const minSummaryChars = 80;
/** A refusal is short; a summary that mentions one is longer. */
const maxRefusalChars = 400;
const refusal =
  /^\W*(?:i(?:'|’)?m (?:sorry|afraid|unable|not able)|sorry\b|i (?:can(?:no|')t|can’t|won(?:'|’)t|am (?:sorry|unable|not able))|as an ai\b)/iu;

/** Validates the model's answer; an answer that does not follow the request is not accepted as a summary. */
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
  /** Used instead of the summary. */
  summary: string;
  /** The notice for the user. */
  notice: string;
}

const maxRequestChars = 200;
const maxRequestsChars = 2_000;

/** The note for messages that are removed without a summary. It follows `previousSummary`, if any. */
export function fallbackSummary(messages: readonly Message[], previousSummary: string | null = null): FallbackSummary {
  const first = messages.at(0);
  const last = messages.at(-1);
  const span = first === undefined || last === undefined ? "" : `, from ${first.createdAt} to ${last.createdAt}`;
  const count = pluralize(messages.length, "message");
  const requests = firstLines(messages);
  const note = [
    `An earlier part of this conversation was removed because summarizing it failed: ${count}${span}. Its content is unknown; ask, or check files and memory, before you rely on it.`,
    ...(requests.length > 0 ? [`The first line of each request in it:\n${requests.join("\n")}`] : []),
  ].join("\n\n");
  return {
    summary: previousSummary === null ? note : `${previousSummary}\n\n${note}`,
    notice: `I could not summarize the earlier part of this conversation and continue without ${count} (nothing is deleted). Please repeat what I need to know from it.`,
  };
}

/** The newest requests that fit, in order. */
function firstLines(messages: readonly Message[]): string[] {
  const lines: string[] = [];
  let chars = 0;
  for (const message of messages.toReversed()) {
    if (!isUserRequest(message)) continue;
    const line = requestText(message).trim().split("\n", 1)[0]?.slice(0, maxRequestChars).toWellFormed() ?? "";
    if (line === "") continue;
    chars += line.length;
    if (chars > maxRequestsChars) {
      lines.push("- (earlier requests are not listed)");
      break;
    }
    lines.push(`- ${line}`);
  }
  return lines.toReversed();
}
