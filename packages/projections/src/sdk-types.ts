// Types of the SDK-style message stream, which `parley run --output stream-json` writes one message per line. Field names match what
// programs for such streams expect.
import type { PermissionMode } from "@parley/contracts";
import type { SdkMode } from "./sdk-modes.ts";

export type ContentBlock =
  | { type: "text"; text: string }
  | { type: "thinking"; thinking: string; signature: string | null }
  | { type: "redacted_thinking"; data: string }
  /** `input` is the parsed JSON, or the raw text if it is not valid JSON. */
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

/** The usage of one model. Null: the turn used several models, and only their sum is known. */
export interface ModelUsage {
  inputTokens: number | null;
  outputTokens: number | null;
  cacheReadInputTokens: number | null;
  cacheCreationInputTokens: number | null;
  /** US dollars; null when a price is unknown. */
  costUSD: number | null;
}

export const resultSubtypes = [
  "success",
  "error_max_turns",
  "error_max_budget_usd",
  "error_max_structured_output_retries",
  "error_during_execution",
] as const;
export type ResultSubtype = (typeof resultSubtypes)[number];

/** Fields of every message. The same events produce the same `uuid`s. */
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
  /** Null: unknown, no agent-core responded. */
  model: string | null;
  /** Names, in the order of the prompt. */
  tools: readonly string[];
  permissionMode: PermissionMode;
  /** The folder of the tools' files on this machine. Null: unknown, or on another machine. */
  cwd: string | null;
  /** The isolation of the cluster's workspace. Null: unknown. */
  workspace: string | null;
  mcpServers: readonly { name: string; status: string }[];
  /** Commands of the chat, without the slash. */
  slashCommands: readonly string[];
  /** Profiles of sub-agents. */
  agents: readonly string[];
  skills: readonly string[];
  /** The version of the gateway. */
  version: string | null;
}

/** The SDK's kinds of failed model calls. */
export type ApiError =
  | "authentication_failed"
  | "billing_error"
  | "rate_limit"
  | "overloaded"
  | "invalid_request"
  | "server_error"
  | "unknown";

/** Messages of type `system`, by subtype. */
type SystemBody =
  | {
      subtype: "init";
      model: string | null;
      tools: readonly string[];
      /** The folder of the tools' files; null: it is on another machine. */
      cwd: string | null;
      workspace: string | null;
      permissionMode: SdkMode;
      version: string | null;
      mcp_servers: readonly { name: string; status: string }[];
      slash_commands: readonly string[];
      agents: readonly string[];
      skills: readonly string[];
      plugins: readonly never[];
      output_style: string;
      apiKeySource: string;
      /** Parley's name and version. */
      claude_code_version: string;
    }
  /** `waiting`: the turn is parked; `waiting_for`: the tools it waits for. Null: the previous status ended. */
  | { subtype: "status"; status: "compacting" | "waiting" | null; waiting_for?: readonly string[] }
  | {
      subtype: "compact_boundary";
      /** `cause`: the trigger in Parley's words, such as `share`. */
      compact_metadata: Record<"cause" | "strategy", string> &
        Record<"pre_tokens" | "post_tokens", number> & { trigger: "auto" | "manual" };
    }
  | {
      subtype: "api_retry";
      /** Of this retry, from 1. */
      attempt: number;
      /** Of one model; 0: unknown. */
      max_retries: number;
      retry_delay_ms: number;
      error_status: null;
      error: ApiError;
      /** The failure in Parley's words. */
      details: string;
    }
  | { subtype: "model_fallback"; from_model: string; to_model: string; reason: string }
  | {
      subtype: "task_started";
      task_id: string;
      tool_use_id: string;
      /** As the call describes it; otherwise the beginning of its prompt. */
      description: string;
      subagent_type: string;
      is_backgrounded: boolean;
    }
  | {
      subtype: "task_notification";
      task_id: string;
      /** Omitted: the tool call belongs to an earlier run. */
      tool_use_id?: string;
      status: "completed" | "failed";
      /** Always empty: the whole report is in `summary`. */
      output_file: "";
      summary: string;
    }
  | {
      /** The next message of a person is the answer. */
      subtype: "user_question";
      tool_use_id: string;
      question: string;
      options: readonly string[];
      /** ISO 8601, UTC; after this time the agent continues without an answer. */
      expires_at: string;
    }
  | {
      subtype: "permission_request";
      /** The arguments of the call; omitted when the event has none. */
      input?: unknown;
      /** The approval id, for `parley approvals` and control responses. */
      request_id: string;
      tool_name: string;
      tool_use_id: string;
      description: string;
      reason: string;
      /** ISO 8601, UTC; after this time the call is denied. */
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
  /** No person decided; `message` is what the model receives. `agent_id`: the session of the sub-agent that made the call. */
  | { subtype: "permission_denied"; tool_name: string; tool_use_id: string; message: string; agent_id?: string }
  | { subtype: "notice"; text: string }
  /** A hook of the program is called; `hook_name`: the event, and the tool if there is one. */
  | { subtype: "hook_started"; hook_id: string; hook_name: string; hook_event: string }
  | {
      subtype: "hook_response";
      hook_id: string;
      hook_name: string;
      hook_event: string;
      /** JSON text that the hook returned, or the error. */
      output: string;
      stdout: string;
      stderr: string;
      outcome: "success" | "error";
    };

/** Partial messages in the format of a streamed model reply. A `message_start` restarts the text. */
export type StreamEvent =
  | {
      type: "message_start";
      message: {
        id: string;
        type: "message";
        role: "assistant";
        model: string | null;
        content: readonly never[];
        stop_reason: null;
        stop_sequence: null;
        usage: SdkUsage;
      };
    }
  | {
      type: "content_block_start";
      index: number;
      content_block:
        | { type: "text"; text: "" }
        | { type: "thinking"; thinking: ""; signature: "" }
        | { type: "tool_use"; id: string; name: string; input: Readonly<Record<string, never>> };
    }
  | {
      type: "content_block_delta";
      index: number;
      delta:
        | { type: "text_delta"; text: string }
        | { type: "thinking_delta"; thinking: string }
        | { type: "input_json_delta"; partial_json: string };
    }
  | { type: "content_block_stop"; index: number }
  /** `usage`: of the model call; zero in a message that is not committed, or if the provider reported none. */
  | { type: "message_delta"; delta: { stop_reason: string | null; stop_sequence: string | null }; usage: SdkUsage }
  | { type: "message_stop" };

type Body =
  | ({ type: "system" } & SystemBody)
  | { type: "stream_event"; parent_tool_use_id: null; event: StreamEvent }
  | {
      type: "assistant";
      /** Null: a message of the run itself. Otherwise the call that started the sub-agent whose message it is. */
      parent_tool_use_id: string | null;
      message: {
        id: string;
        type: "message";
        role: "assistant";
        model: string | null;
        content: readonly ContentBlock[];
        stop_reason: string | null;
        /** The stop sequence that was reached; null: none, or the provider did not report which. */
        stop_sequence: string | null;
        /** Of the model call; zero: the provider reported none. */
        usage: SdkUsage;
      };
    }
  /** Tool results or, with `isSynthetic`, a note of the loop to the model. */
  | {
      type: "user";
      parent_tool_use_id: string | null;
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
      /** With status `progress`: the progress reported by the tool; `total` null: unknown. */
      progress?: { done: number; total: number | null; message: string };
    }
  | {
      type: "result";
      subtype: ResultSubtype;
      is_error: boolean;
      /** Parley's exit reason (`end_turn`, `max_turns`, `interrupted` …). */
      terminal_reason: string;
      duration_ms: number;
      /** `duration_ms` without the time in which tools ran. */
      duration_api_ms: number;
      /** The number of model calls of the run, including earlier turns. */
      num_turns: number;
      result: string;
      /** The stop reason of the last model call; null: there was none. */
      stop_reason: string | null;
      /** US dollars of the run with its sub-agents, including earlier turns; null when the price of a call is unknown. */
      total_cost_usd: number | null;
      /** Of the run, including earlier turns. */
      usage: SdkUsage;
      modelUsage: Readonly<Record<string, ModelUsage>>;
      permission_denials: readonly PermissionDenial[];
      /** Error messages; empty after a success. */
      errors: readonly string[];
      /** The value of an answer that had to match a schema. */
      structured_output?: unknown;
    };

export type SdkBody = Body;
export type SdkMessage = Body & Envelope;
