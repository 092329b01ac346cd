// A session as frames for a client that shows one turn after another: text_delta, tool_started, tool_completed, question, error,
// turn_complete. Every turn ends with one turn_complete. Pure.
import type { SessionEvent } from "@parley/contracts";
import { sdkUsage } from "./sdk-blocks.ts";
import type { SdkUsage } from "./sdk-types.ts";
import { VisibleText, type OutputRule } from "./visible-text.ts";
import { Position } from "./position.ts";
import { ToolCalls, type ToolCallUpdate } from "./tool-calls.ts";

/** The answers to an approval question. */
export const questionOptions = ["yes", "always", "no"] as const;

export type TurnFrame =
  | { type: "text_delta"; text: string }
  | { type: "tool_started"; tool_use_id: string; tool: string }
  | { type: "tool_completed"; tool_use_id: string; tool: string; error: boolean }
  /** A tool call waits for approval, or the agent has a question; `id` is the approval's or the tool call's. */
  | { type: "question"; id: string; text: string; options: readonly string[] }
  | { type: "error"; message: string }
  | { type: "turn_complete"; usage: SdkUsage };

interface Turn {
  calls: ToolCalls;
  spoken: VisibleText;
}

/** Converts all events of one session. */
export class TurnFrames {
  readonly #rule: OutputRule;
  readonly #turns = new Map<string, Turn>();
  readonly #position = new Position();

  constructor(rule: OutputRule) {
    this.#rule = rule;
  }

  event(event: SessionEvent): TurnFrame[] {
    if (this.#position.isOld(event)) return [];
    const turnId = event.type === "message" ? event.message.turnId : event.turnId;
    if (event.type === "question.asked") {
      return [{ type: "question", id: event.callId, text: event.question, options: event.options }];
    }
    if (event.type === "approval.requested") {
      const text = `${event.summary}\n${event.reason}`;
      return [{ type: "question", id: event.approvalId, text, options: questionOptions }];
    }
    const turn = this.#turnOf(turnId);
    const news = turn.calls.event(event);
    if (event.type !== "turn.finished") return [...news.map(wordOf), ...delta(turn.spoken.event(event, news))];
    this.#turns.delete(turnId);
    const end: TurnFrame[] =
      event.exitReason === "error" ? [{ type: "error", message: event.text }] : delta(turn.spoken.event(event, news));
    return [...end, { type: "turn_complete", usage: sdkUsage(event.usage) }];
  }

  #turnOf(turnId: string): Turn {
    let turn = this.#turns.get(turnId);
    if (turn === undefined) {
      turn = { calls: new ToolCalls(), spoken: new VisibleText(this.#rule) };
      this.#turns.set(turnId, turn);
    }
    return turn;
  }
}

function delta(text: string): TurnFrame[] {
  return text === "" ? [] : [{ type: "text_delta", text }];
}

function wordOf(news: ToolCallUpdate): TurnFrame {
  const call = { tool_use_id: news.id, tool: news.tool };
  if (news.news === "started") return { type: "tool_started", ...call };
  return { type: "tool_completed", ...call, error: news.isError };
}
