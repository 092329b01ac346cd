// Mapping of PostgreSQL rows to wire objects. Stored JSON was validated when it arrived, so it is not validated again here.
import {
  isUntrustedInput,
  type Cost,
  type DurableEvent,
  type HookOutcome,
  type Message,
  type Part,
  type ReplyAddress,
  type Sender,
  type SessionOverrides,
  type SessionState,
  type StoredAuthorization,
  type ToolResult,
  type ToolStep,
  type TurnSummary,
} from "@parley/contracts";
import { millisecondsSince, omitUndefined } from "@parley/kit";
import type { PoolClient } from "./database.ts";

export interface MessageRow {
  seq: number;
  role: Message["role"];
  turn_id: string;
  parts: string;
  model: string | null;
  sender: string | null;
  /** The leader's mark; see `isTainted`. */
  tainted: boolean | null;
  created_at: string;
  sent_at: string | null;
}

export const messageColumns = "seq, role, turn_id, parts, model, sender, tainted, created_at, sent_at";

export function messageOf(row: MessageRow): Message {
  const parts = JSON.parse(row.parts) as Message["parts"];
  const from = row.sender === null ? undefined : loggedSender(row.sender);
  return {
    seq: row.seq,
    role: row.role,
    turnId: row.turn_id,
    parts,
    model: row.model,
    ...(row.sent_at === null ? {} : { sentAt: row.sent_at }),
    createdAt: row.created_at,
    ...(from === undefined ? {} : { from }),
    ...(isTainted(row.tainted, from, parts) ? { tainted: true } : {}),
  };
}

/** The sender without what its turn alone needs. */
function loggedSender(stored: string): Sender {
  const { answer: _, ...sender } = senderOf(stored);
  return sender;
}

/** Whether a message is tainted: by the leader's mark or by its sender and files. */
export function isTainted(marked: boolean | null, from: Sender | undefined, parts: readonly Part[]): boolean {
  return marked === true || (from !== undefined && isUntrustedInput(from, parts));
}

export function senderOf(stored: string): Sender {
  return JSON.parse(stored) as Sender;
}

export interface StepRow {
  turn_id: string;
  n: number;
  call_id: string;
  tool: string;
  class: ToolStep["class"];
  state: ToolStep["state"];
  input: string;
  authorization_json: string | null;
  result: string | null;
  runner: string | null;
  started_at: string | null;
  hook_outcome: string | null;
}

export const stepColumns =
  "turn_id, n, call_id, tool, class, state, input, authorization_json, result, runner, started_at, hook_outcome";

export function toolStepOf(row: StepRow): ToolStep {
  return {
    turnId: row.turn_id,
    n: row.n,
    callId: row.call_id,
    tool: row.tool,
    class: row.class,
    state: row.state,
    input: JSON.parse(row.input) as string,
    ...(row.authorization_json === null
      ? {}
      : { authorization: JSON.parse(row.authorization_json) as StoredAuthorization }),
    result: row.result === null ? null : (JSON.parse(row.result) as ToolResult),
    runner: row.runner,
    startedAt: row.started_at,
    ...(row.hook_outcome === null ? {} : { hookOutcome: JSON.parse(row.hook_outcome) as HookOutcome }),
  };
}

/** For the result of a call that ends now: how long it ran. Nothing when it was not started. */
export function durationOf(startedAt: string | null): Pick<ToolResult, "durationMs"> {
  return omitUndefined({ durationMs: millisecondsSince(startedAt) });
}

interface OpenStepRow extends StepRow {
  approval: {
    id: string;
    state: NonNullable<ToolStep["approval"]>["state"];
    call_hash: string;
    expires_at: string;
    always: boolean;
    decided_by: string | null;
    updated_input: string | null;
    message: string | null;
    interrupt: boolean;
    authorization: string | null;
  } | null;
}

/** A turn's tool steps whose results are in no message yet, in call order, each with its newest approval question. */
export async function openSteps(client: PoolClient, turnId: string, lock = ""): Promise<ToolStep[]> {
  const { rows } = await client.query<OpenStepRow>(
    `SELECT s.turn_id, s.n, s.call_id, s.tool, s.class, s.state, s.input, s.authorization_json, s.result, s.runner, s.started_at, s.hook_outcome,
       (SELECT json_build_object('id', a.id, 'call_hash', a.call_hash, 'always', a.always, 'decided_by', a.decided_by,
         'updated_input', a.updated_input, 'message', a.message, 'interrupt', a.interrupt, 'authorization', a.authorization_json,
          'expires_at', to_char(a.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
          'state', CASE WHEN a.state = 'pending' AND a.expires_at <= now() THEN 'expired' ELSE a.state END)
        FROM parley.approvals a WHERE a.turn_id = s.turn_id AND a.n = s.n ORDER BY a.requested_at DESC LIMIT 1) AS approval
     FROM parley.steps s WHERE s.turn_id = $1 AND s.kind = 'tool' AND s.message_seq IS NULL ORDER BY s.n ${lock}`,
    [turnId],
  );
  return rows.map((row) => {
    const { approval } = row;
    if (approval === null) return toolStepOf(row);
    return {
      ...toolStepOf(row),
      approval: {
        id: approval.id,
        state: approval.state,
        callHash: approval.call_hash,
        expiresAt: approval.expires_at,
        always: approval.always,
        decidedBy: approval.decided_by,
        ...(approval.updated_input === null ? {} : { updatedInput: approval.updated_input }),
        ...(approval.message === null ? {} : { message: approval.message }),
        ...(approval.interrupt ? { interrupt: true } : {}),
        ...(approval.authorization === null
          ? {}
          : { authorization: JSON.parse(approval.authorization) as StoredAuthorization }),
      },
    };
  });
}

/** The usage and cost columns of a turn. */
export interface SpentRow {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  cost_micros: number;
  unpriced_calls: number;
}

export function spentOf(row: SpentRow): Pick<TurnSummary, "usage" | "cost"> {
  return {
    usage: {
      inputTokens: row.input_tokens,
      outputTokens: row.output_tokens,
      cacheReadTokens: row.cache_read_tokens,
      cacheWriteTokens: row.cache_write_tokens,
    },
    cost: { micros: row.cost_micros, unpricedCalls: row.unpriced_calls },
  };
}

export interface TurnRow extends SpentRow {
  id: string;
  session_id: string;
  state: TurnSummary["state"];
  exit_reason: TurnSummary["exitReason"];
  answer: string | null;
  model_steps: number;
  attempts: number;
  started_at: string;
  finished_at: string | null;
}

export const turnColumns =
  "id, session_id, state, exit_reason, answer, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micros, unpriced_calls, model_steps, attempts, started_at, finished_at";

export function turnOf(row: TurnRow): TurnSummary {
  return {
    turnId: row.id,
    sessionId: row.session_id,
    state: row.state,
    exitReason: row.exit_reason,
    text: row.answer === null ? null : (JSON.parse(row.answer) as string),
    ...spentOf(row),
    modelSteps: row.model_steps,
    attempts: row.attempts,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
  };
}

/** `ofSubagents`: what the sub-agents of the turn have cost. */
export function finishedEvent(seq: number, turn: TurnSummary, ofSubagents?: Cost): DurableEvent {
  const { micros = 0, unpricedCalls = 0 } = ofSubagents ?? {};
  const { cost } = turn;
  return {
    type: "turn.finished",
    seq,
    turnId: turn.turnId,
    state: turn.state,
    exitReason: turn.exitReason ?? "error",
    text: turn.text ?? "",
    usage: turn.usage,
    cost,
    ...(micros + unpricedCalls === 0
      ? {}
      : { treeCost: { micros: cost.micros + micros, unpricedCalls: cost.unpricedCalls + unpricedCalls } }),
  };
}

export function addressOf(stored: string | null): ReplyAddress | null {
  return stored === null ? null : (JSON.parse(stored) as ReplyAddress);
}

/** The distinct conversations among these, without the first one. */
export function otherAddresses(first: string | null, stored: readonly (string | null)[]): ReplyAddress[] {
  const known = new Set(first === null ? [] : [placeOf(addressOf(first))]);
  const others: ReplyAddress[] = [];
  for (const address of stored.map(addressOf)) {
    if (address === null || known.has(placeOf(address))) continue;
    known.add(placeOf(address));
    others.push(address);
  }
  return others;
}

function placeOf(address: ReplyAddress | null): string {
  return address === null ? "" : JSON.stringify([address.channel, address.account, address.conversation]);
}

export interface SessionStateRow {
  view: string | null;
  overrides: string | null;
  profile: string | null;
  parent_id: string | null;
  depth: number;
  prefix_hash: string | null;
}

export const sessionStateColumns = "view, overrides, profile, parent_id, depth, prefix_hash";

export function sessionStateOf(row: SessionStateRow): SessionState {
  return {
    view: row.view === null ? null : (JSON.parse(row.view) as SessionState["view"]),
    overrides: overridesOf(row.overrides),
    profile: row.profile,
    parentId: row.parent_id,
    depth: row.depth,
    prefixHash: row.prefix_hash,
  };
}

export function overridesOf(stored: string | null): SessionOverrides {
  return stored === null ? {} : (JSON.parse(stored) as SessionOverrides);
}
