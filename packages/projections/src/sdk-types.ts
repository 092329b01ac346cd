// The SDK-style message stream: what `parley run --output stream-json` writes, one message a line. Field names are those that
// programs written for such streams expect; what Parley adds is named in the comments.
import type { PermissionMode } from "@parley/contracts";

export type ContentBlock =
  | { type: "text"; text: string }
  | { type: "thinking"; thinking: string; signature: string | null }
  | { type: "redacted_thinking"; data: string }
  /** `input` is the parsed JSON; an input that is none is given as the text it is. */
  | { type: "tool_use"; id: string; name: string; input: unknown };

export interface ToolResultBlock {
  type: "tool_result";
  tool_use_id: string;
  content: string;
  is_error: boolean;
}

export interface SdkUsage {
  input_tokens: number;
  output_tokens: number;
  cache_read_input_tokens: number;
  cache_creation_input_tokens: number;
}

/** Of one model. Null: the turn used several, and only their sum is known. */
export interface ModelUsage {
  inputTokens: number | null;
  outputTokens: number | null;
  cacheReadInputTokens: number | null;
  cacheCreationInputTokens: number | null;
  /** US dollars; null when a price is not known. */
  costUSD: number | null;
}

export const resultSubtypes = ["success", "error_max_turns", "error_max_budget_usd", "error_during_execution"] as const;
export type ResultSubtype = (typeof resultSubtypes)[number];

/** What every message carries. The same events give the same `uuid`s again. */
interface Envelope {
  uuid: string;
  session_id: string;
}

export interface PermissionDenial {
  tool_name: string;
  tool_use_id: string;
  tool_input: unknown;
}

export interface SdkInit {
  sessionId: string;
  /** Null: nobody could say which model answers. */
  model: string | null;
  /** Names, in the order in which the model sees them. */
  tools: readonly string[];
  permissionMode: PermissionMode;
  /** Stands in place of a working folder: how the workspace of the cluster is kept apart. Null: not known. */
  workspace: string | null;
  /** Of the gateway. */
  version: string | null;
}

/** Messages of type `system`, by subtype. */
type SystemBody =
  | {
      subtype: "init";
      model: string | null;
      tools: readonly string[];
      /** Always null: the tools run in the cluster's workspace, not where the command was given. */
      cwd: null;
      workspace: string | null;
      permissionMode: PermissionMode;
      version: string | null;
    }
  /** `waiting`: the turn is parked; `waiting_for` are the tools it waits for. Null: what was going on is over. */
  | { subtype: "status"; status: "compacting" | "waiting" | null; waiting_for?: readonly string[] }
  | {
      subtype: "compact_boundary";
      compact_metadata: { trigger: string; strategy: string; pre_tokens: number; post_tokens: number };
    }
  | { subtype: "api_retry"; attempt: number; retry_delay_ms: number; error: string }
  | { subtype: "model_fallback"; from_model: string; to_model: string; reason: string }
  | { subtype: "task_started"; task_id: string; tool_use_id: string; profile: string; mode: "wait" | "background" }
  | {
      subtype: "task_notification";
      task_id: string;
      /** Null: its call was in an earlier run. */
      tool_use_id: string | null;
      status: "completed" | "failed";
      summary: string;
    }
  | {
      /** What a person says next is the answer. */
      subtype: "user_question";
      tool_use_id: string;
      question: string;
      options: readonly string[];
      /** ISO 8601, UTC; then the agent goes on without. */
      expires_at: string;
    }
  | {
      subtype: "permission_request";
      /** The arguments of the call; left out where the event has none. */
      input?: unknown;
      /** What `parley approvals` and a control response name it by. */
      request_id: string;
      tool_name: string;
      tool_use_id: string;
      description: string;
      reason: string;
      /** ISO 8601, UTC; then it is a no. */
      expires_at: string;
    }
  | {
      subtype: "permission_decided";
      request_id: string;
      tool_name: string;
      tool_use_id: string;
      allowed: boolean;
      by: string;
    }
  | { subtype: "notice"; text: string };

/** What is being written, piece by piece, in the words of a streamed model reply. A `message_start` begins the text anew. */
export type StreamEvent =
  | { type: "message_start"; message: { id: string; role: "assistant" } }
  | {
      type: "content_block_start";
      index: number;
      content_block: { type: "text"; text: "" } | { type: "thinking"; thinking: "" };
    }
  | {
      type: "content_block_delta";
      index: number;
      delta: { type: "text_delta"; text: string } | { type: "thinking_delta"; thinking: string };
    }
  | { type: "content_block_stop"; index: number }
  | { type: "message_stop" };

type Body =
  | ({ type: "system" } & SystemBody)
  | { type: "stream_event"; parent_tool_use_id: null; event: StreamEvent }
  | {
      type: "assistant";
      parent_tool_use_id: null;
      message: {
        id: string;
        type: "message";
        role: "assistant";
        model: string | null;
        content: readonly ContentBlock[];
        stop_reason: string | null;
      };
    }
  /** Results of tools; or, with `isSynthetic`, words the loop itself says to the model. */
  | {
      type: "user";
      parent_tool_use_id: null;
      message: { role: "user"; content: readonly (ToolResultBlock | { type: "text"; text: string })[] };
      isSynthetic?: true;
    }
  | {
      type: "tool_progress";
      parent_tool_use_id: null;
      tool_use_id: string;
      tool_name: string;
      status: "start" | "progress" | "end";
      elapsed_time_seconds: number;
      /** With `progress`: how far the tool says it has come; `total` null where it does not know. */
      progress?: { done: number; total: number | null; message: string };
    }
  | {
      type: "result";
      subtype: ResultSubtype;
      is_error: boolean;
      /** Why the turn ended, in Parley's own words (`end_turn`, `max_turns`, `interrupted` …). */
      terminal_reason: string;
      duration_ms: number;
      /** Model calls. */
      num_turns: number;
      result: string;
      /** US dollars; null when the price of a call is not known. */
      total_cost_usd: number | null;
      usage: SdkUsage;
      modelUsage: Readonly<Record<string, ModelUsage>>;
      permission_denials: readonly PermissionDenial[];
      /** What went wrong; empty after a success. */
      errors: readonly string[];
    };

export type SdkBody = Body;
export type SdkMessage = Body & Envelope;
