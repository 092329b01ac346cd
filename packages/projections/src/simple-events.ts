// One turn as five types of events: token, tool_call, tool_result, done, error. The last event is one done or one error. Pure.
import type { SessionEvent } from "@parley/contracts";
import { sdkUsage } from "./sdk-totals.ts";
import type { SdkUsage } from "./sdk-types.ts";
import { VisibleText, type OutputRule } from "./visible-text.ts";
import { ToolCalls, type ToolCallUpdate } from "./tool-calls.ts";

export type SimpleEvent =
  /** Text to append to what the user sees. */
  | { type: "token"; data: string }
  /** `input` is JSON text. */
  | { type: "tool_call"; data: { id: string; name: string; input: string } }
  /** `content` may be truncated at 2,000 characters. */
  | { type: "tool_result"; data: { id: string; name: string; content: string; is_error: boolean } }
  | { type: "done"; data: { exit_reason: string; usage: SdkUsage } }
  | { type: "error"; data: string };

/** Converts the events of one turn. */
export class SimpleEvents {
  readonly #calls = new ToolCalls();
  readonly #visibleText: VisibleText;
  #over = false;

  constructor(rule: OutputRule) {
    this.#visibleText = new VisibleText(rule);
  }

  event(event: SessionEvent): SimpleEvent[] {
    if (this.#over) return [];
    if (event.type === "turn.finished" && event.exitReason === "error") {
      this.#over = true;
      return [{ type: "error", data: event.text }];
    }
    const news = this.#calls.event(event);
    const text = this.#visibleText.event(event, news);
    const converted: SimpleEvent[] = [
      ...news.map(toolEventOf),
      ...(text === "" ? [] : [{ type: "token", data: text } as const]),
    ];
    if (event.type !== "turn.finished") return converted;
    this.#over = true;
    return [...converted, { type: "done", data: { exit_reason: event.exitReason, usage: sdkUsage(event.usage) } }];
  }
}

function toolEventOf(news: ToolCallUpdate): SimpleEvent {
  const { id, tool: name, input } = news;
  if (news.news === "started") return { type: "tool_call", data: { id, name, input } };
  return { type: "tool_result", data: { id, name, content: news.content, is_error: news.isError } };
}
