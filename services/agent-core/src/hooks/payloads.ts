// The payload of each hook event, built from the loop's state. Pure; one builder per event.
import { parseJson } from "@parley/kit";
import type { HookEvent, HookPayload, PermissionMode } from "@parley/contracts";

/** The session and turn in which an event happens. */
export interface HookContext {
  sessionId: string;
  /** The routing key. */
  sessionKey: string;
  /** Null outside a turn. */
  turnId: string | null;
  permissionMode: PermissionMode;
  /** Null: the agent itself. */
  profile: string | null;
}

type PayloadOf<E extends HookEvent> = Extract<HookPayload, { hook_event_name: E }>;

interface ToolUse {
  tool: string;
  /** Other names of the tool, which matchers may use; they are not part of the payload. */
  aliases?: readonly string[];
  callId: string;
  /** JSON text, as the model wrote it. */
  input: string;
}

interface Compaction {
  trigger: PayloadOf<"PreCompact">["trigger"];
}

interface Subagent {
  /** The child's session. */
  sessionId: string;
  profile: string;
}

/** The event data from the loop; the contracts document the fields. */
export interface HookEventData {
  SessionStart: { source: PayloadOf<"SessionStart">["source"] };
  UserPromptSubmit: { origin: string; prompt: string };
  PreToolUse: ToolUse;
  PostToolUse: ToolUse & { output: string };
  PostToolUseFailure: ToolUse & { error: string };
  PermissionRequest: ToolUse & { reason: string };
  PreCompact: Compaction & { promptTokens: number | null; instructions: string | null };
  PostCompact: Compaction & { tokensBefore: number | null; tokensAfter: number | null; summary: string | null };
  Stop: { exitReason: PayloadOf<"Stop">["exit_reason"]; lastText: string; stopHookActive: boolean };
  SubagentStart: Subagent & { prompt: string; background: boolean };
  SubagentStop: Subagent & { exitReason: PayloadOf<"SubagentStop">["exit_reason"]; lastText: string };
  SessionEnd: { reason: PayloadOf<"SessionEnd">["reason"] };
  Notification: { type: string; message: string };
}

type Builders = { [E in HookEvent]: (hookContext: HookContext, facts: HookEventData[E]) => PayloadOf<E> };

export const hookPayloads: Builders = {
  SessionStart: (hookContext, { source }) => ({ hook_event_name: "SessionStart", ...everywhere(hookContext), source }),
  UserPromptSubmit: (hookContext, { origin, prompt }) => ({
    hook_event_name: "UserPromptSubmit",
    ...everywhere(hookContext),
    origin,
    prompt,
  }),
  PreToolUse: (hookContext, use) => ({ hook_event_name: "PreToolUse", ...everywhere(hookContext), ...toolUse(use) }),
  PostToolUse: (hookContext, use) => ({
    hook_event_name: "PostToolUse",
    ...everywhere(hookContext),
    ...toolUse(use),
    tool_response: use.output,
  }),
  PostToolUseFailure: (hookContext, use) => ({
    hook_event_name: "PostToolUseFailure",
    ...everywhere(hookContext),
    ...toolUse(use),
    error: use.error,
  }),
  PermissionRequest: (hookContext, use) => ({
    hook_event_name: "PermissionRequest",
    ...everywhere(hookContext),
    ...toolUse(use),
    reason: use.reason,
  }),
  PreCompact: (hookContext, { trigger, promptTokens, instructions }) => ({
    hook_event_name: "PreCompact",
    ...everywhere(hookContext),
    trigger,
    prompt_tokens: promptTokens,
    custom_instructions: instructions,
  }),
  PostCompact: (hookContext, { trigger, tokensBefore, tokensAfter, summary }) => ({
    hook_event_name: "PostCompact",
    ...everywhere(hookContext),
    trigger,
    tokens_before: tokensBefore,
    tokens_after: tokensAfter,
    summary,
  }),
  Stop: (hookContext, { exitReason, lastText, stopHookActive }) => ({
    hook_event_name: "Stop",
    ...everywhere(hookContext),
    exit_reason: exitReason,
    last_assistant_message: lastText,
    stop_hook_active: stopHookActive,
  }),
  SubagentStart: (hookContext, { sessionId, profile, prompt, background }) => ({
    hook_event_name: "SubagentStart",
    ...everywhere(hookContext),
    agent_id: sessionId,
    agent_type: profile,
    prompt,
    background,
  }),
  SubagentStop: (hookContext, { sessionId, profile, exitReason, lastText }) => ({
    hook_event_name: "SubagentStop",
    ...everywhere(hookContext),
    agent_id: sessionId,
    agent_type: profile,
    exit_reason: exitReason,
    last_assistant_message: lastText,
  }),
  SessionEnd: (hookContext, { reason }) => ({ hook_event_name: "SessionEnd", ...everywhere(hookContext), reason }),
  Notification: (hookContext, { type, message }) => ({
    hook_event_name: "Notification",
    ...everywhere(hookContext),
    notification_type: type,
    message,
  }),
};

/** What a hook's matcher is compared with: the tool's own name (aliases count too), or a field of the event. */
export function subjectOfHook(payload: HookPayload): string {
  switch (payload.hook_event_name) {
    case "PreToolUse":
    case "PostToolUse":
    case "PostToolUseFailure":
    case "PermissionRequest":
      return payload.tool_name;
    case "SessionStart":
      return payload.source;
    case "UserPromptSubmit":
      return payload.origin;
    case "PreCompact":
    case "PostCompact":
      return payload.trigger;
    case "SubagentStart":
    case "SubagentStop":
      return payload.agent_type;
    case "Stop":
      return payload.exit_reason;
    case "SessionEnd":
      return payload.reason;
    case "Notification":
      return payload.notification_type;
    default:
      return payload satisfies never;
  }
}

function everywhere(hookContext: HookContext) {
  return {
    session_id: hookContext.sessionId,
    session_key: hookContext.sessionKey,
    turn_id: hookContext.turnId,
    permission_mode: hookContext.permissionMode,
    profile: hookContext.profile,
  };
}

function toolUse({ tool, callId, input }: ToolUse) {
  return { tool_name: tool, tool_use_id: callId, tool_input: jsonOr(input) };
}

/** The value of a JSON text, or the text itself if it is not JSON. */
export function jsonOr(text: string): unknown {
  const value = parseJson(text);
  return value === undefined ? text : value;
}
