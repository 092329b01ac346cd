// Rows as they come from PostgreSQL, and what they are on the wire. Stored JSON was parsed at the edge when it came in; it is
// trusted here.
import type { DurableEvent, Message, ReplyAddress, ToolResult, ToolStep, TurnSummary } from "@parley/contracts";

export interface MessageRow {
  seq: number;
  role: Message["role"];
  turn_id: string;
  parts: string;
  model: string | null;
  created_at: string;
}

export function messageOf(row: MessageRow): Message {
  return {
    seq: row.seq,
    role: row.role,
    turnId: row.turn_id,
    parts: JSON.parse(row.parts) as Message["parts"],
    model: row.model,
    createdAt: row.created_at,
  };
}

export interface StepRow {
  turn_id: string;
  n: number;
  call_id: string;
  tool: string;
  class: ToolStep["class"];
  state: ToolStep["state"];
  input: string;
  result: string | null;
  runner: string | null;
  started_at: string | null;
}

export const stepColumns = "turn_id, n, call_id, tool, class, state, input, result, runner, started_at";

export function toolStepOf(row: StepRow): ToolStep {
  return {
    turnId: row.turn_id,
    n: row.n,
    callId: row.call_id,
    tool: row.tool,
    class: row.class,
    state: row.state,
    input: JSON.parse(row.input) as string,
    result: row.result === null ? null : (JSON.parse(row.result) as ToolResult),
    runner: row.runner,
    startedAt: row.started_at,
  };
}

export interface TurnRow {
  id: string;
  session_id: string;
  state: TurnSummary["state"];
  exit_reason: TurnSummary["exitReason"];
  answer: string | null;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  model_steps: number;
  attempts: number;
  started_at: string;
  finished_at: string | null;
}

export const turnColumns =
  "id, session_id, state, exit_reason, answer, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, model_steps, attempts, started_at, finished_at";

export function turnOf(row: TurnRow): TurnSummary {
  return {
    turnId: row.id,
    sessionId: row.session_id,
    state: row.state,
    exitReason: row.exit_reason,
    text: row.answer === null ? null : (JSON.parse(row.answer) as string),
    usage: {
      inputTokens: row.input_tokens,
      outputTokens: row.output_tokens,
      cacheReadTokens: row.cache_read_tokens,
      cacheWriteTokens: row.cache_write_tokens,
    },
    modelSteps: row.model_steps,
    attempts: row.attempts,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
  };
}

export function finishedEvent(seq: number, turn: TurnSummary): DurableEvent {
  return {
    type: "turn.finished",
    seq,
    turnId: turn.turnId,
    state: turn.state,
    exitReason: turn.exitReason ?? "error",
    text: turn.text ?? "",
    usage: turn.usage,
  };
}

export function addressOf(stored: string | null): ReplyAddress | null {
  return stored === null ? null : (JSON.parse(stored) as ReplyAddress);
}
