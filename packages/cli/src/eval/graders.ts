// Grades one turn of a case. Pure.

import { ownToolName } from "@parley/contracts";

import type { Grader } from "./case-file.ts";

/** What a turn did. */
export interface TurnRecord {
  readonly turnId: string | null;
  /** The turn ended with an answer. */
  readonly answered: boolean;
  readonly text: string;
  /** Own names of the called tools, in order. */
  readonly tools: readonly string[];
  /** Null: the price of a call is unknown. */
  readonly costUsd: number | null;
  readonly seconds: number;
  readonly modelCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Why the turn fails this grader; null: it passes. */
export function failureOf(grader: Grader, turn: TurnRecord): string | null {
  const { text, tools, costUsd, seconds } = turn;
  if ("match" in grader) {
    return text.trim() === grader.match.trim()
      ? null
      : `match: the answer is ${quote(text)}, not ${quote(grader.match)}`;
  }
  if ("contains" in grader) {
    return text.includes(grader.contains)
      ? null
      : `contains: the answer ${quote(text)} does not contain ${quote(grader.contains)}`;
  }
  if ("regex" in grader) {
    return new RegExp(grader.regex, "u").test(text)
      ? null
      : `regex: the answer ${quote(text)} does not match /${grader.regex}/`;
  }
  if ("tool_used" in grader) {
    return tools.includes(ownToolName(grader.tool_used))
      ? null
      : `tool_used: ${grader.tool_used} was not called (${list(tools)})`;
  }
  if ("tool_sequence" in grader) {
    const wanted = grader.tool_sequence.map(ownToolName);
    return list(wanted) === list(tools) ? null : `tool_sequence: the calls were ${list(tools)}, not ${list(wanted)}`;
  }
  if ("max_cost_usd" in grader) {
    if (costUsd === null) return "max_cost_usd: the price of a call is unknown";
    return costUsd <= grader.max_cost_usd
      ? null
      : `max_cost_usd: the turn cost $${costUsd}, more than $${grader.max_cost_usd}`;
  }
  return seconds <= grader.max_seconds
    ? null
    : `max_seconds: the turn took ${seconds.toFixed(1)} s, more than ${grader.max_seconds} s`;
}

/** All failures of a turn. A turn without an answer fails in any case. */
export function grade(expected: readonly Grader[], turn: TurnRecord): string[] {
  const unanswered = turn.answered ? [] : [`the turn ended without an answer: ${quote(turn.text)}`];
  return [...unanswered, ...expected.flatMap((grader) => failureOf(grader, turn) ?? [])];
}

function list(tools: readonly string[]): string {
  return tools.length === 0 ? "none" : tools.join(", ");
}

const maxQuoted = 200;

function quote(text: string): string {
  return JSON.stringify(text.length > maxQuoted ? `${text.slice(0, maxQuoted)}…` : text);
}
