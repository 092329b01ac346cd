// Hook payloads and hook answers, and the subject by which agent-core runs a hook. Hooks are written by users in any language: their JSON
// has snake_case names, and the same names as the hooks of other agents where those exist.
import { z } from "zod";
import { request } from "./contract.ts";
import { permissionModes } from "./settings/permissions.ts";
import { exitReasons } from "./turns.ts";

const everywhere = {
  session_id: z.string(),
  /** The routing key: identifies the conversation of this session. */
  session_key: z.string(),
  /** Null outside a turn. */
  turn_id: z.string().nullable(),
  permission_mode: z.enum(permissionModes),
  /** The session's profile; null: the main agent. */
  profile: z.string().nullable(),
};

const toolUse = {
  tool_name: z.string(),
  tool_use_id: z.string(),
  /** The arguments; a string when the model's output is not valid JSON. */
  tool_input: z.unknown(),
};

const compactTriggers = ["auto", "manual", "overflow", "idle"] as const;
const compaction = { trigger: z.enum(compactTriggers) };

const subagent = {
  /** The session of the sub-agent. */
  agent_id: z.string(),
  /** Its profile. */
  agent_type: z.string(),
};

/** The payload on a hook's standard input or in the body of its HTTP request. The matcher is compared with one field of each event: see docs/hooks.md. */
const HookPayloadSchema = z.discriminatedUnion("hook_event_name", [
  z.object({
    hook_event_name: z.literal("SessionStart"),
    ...everywhere,
    /**
     * `startup`: its first turn. `clear`: the first turn after `/new`. `resume`, `fork`: the first turn after its conversation returned to
     * it, or continued in it as a copy. `compact`: it continues after a compaction.
     */
    source: z.enum(["startup", "clear", "resume", "fork", "compact"]),
  }),
  z.object({
    hook_event_name: z.literal("UserPromptSubmit"),
    ...everywhere,
    /** Origin of the input: `user`, `webhook`, `cron`, … */
    origin: z.string(),
    prompt: z.string(),
  }),
  z.object({ hook_event_name: z.literal("PreToolUse"), ...everywhere, ...toolUse }),
  z.object({
    hook_event_name: z.literal("PostToolUse"),
    ...everywhere,
    ...toolUse,
    /** The text that the model will receive. */
    tool_response: z.string(),
  }),
  z.object({
    hook_event_name: z.literal("PostToolUseFailure"),
    ...everywhere,
    ...toolUse,
    /** The text that the model will receive. */
    error: z.string(),
  }),
  z.object({
    hook_event_name: z.literal("PermissionRequest"),
    ...everywhere,
    ...toolUse,
    /** Why the call requires approval. */
    reason: z.string(),
  }),
  z.object({
    hook_event_name: z.literal("PreCompact"),
    ...everywhere,
    ...compaction,
    /** Null when unknown. */
    prompt_tokens: z.number().int().nullable(),
    /** What a person wants the summary to keep. */
    custom_instructions: z.string().nullable(),
  }),
  z.object({
    hook_event_name: z.literal("PostCompact"),
    ...everywhere,
    ...compaction,
    tokens_before: z.number().int().nullable(),
    tokens_after: z.number().int().nullable(),
    /** Null when no summary was generated. */
    summary: z.string().nullable(),
  }),
  z.object({
    hook_event_name: z.literal("Stop"),
    ...everywhere,
    exit_reason: z.enum(exitReasons),
    last_assistant_message: z.string(),
    /** A Stop hook has already made this turn continue. */
    stop_hook_active: z.boolean(),
  }),
  z.object({
    hook_event_name: z.literal("SubagentStart"),
    ...everywhere,
    ...subagent,
    prompt: z.string(),
    background: z.boolean(),
  }),
  z.object({
    hook_event_name: z.literal("SubagentStop"),
    ...everywhere,
    ...subagent,
    exit_reason: z.enum(exitReasons),
    last_assistant_message: z.string(),
  }),
  z.object({
    hook_event_name: z.literal("SessionEnd"),
    ...everywhere,
    /** `clear`: the conversation moved to a new session. */
    reason: z.enum(["clear", "archived", "switched", "other"]),
  }),
  z.object({
    hook_event_name: z.literal("Notification"),
    ...everywhere,
    /** Kind of notification: `permission_prompt`, `limit`, … */
    notification_type: z.string(),
    message: z.string(),
  }),
]);
export type HookPayload = z.infer<typeof HookPayloadSchema>;

/** Maximum size of a hook's output or response body; larger output is rejected as a whole. */
export const maxHookOutputBytes = 64 * 1024;

const json = z.record(z.string(), z.unknown());

/** The output of a hook. Every field is optional; unknown fields are ignored. */
export const HookOutputSchema = z.object({
  /** `false` ends the turn. */
  continue: z.boolean().optional(),
  /** `approve` and `block` are older names of `allow` and `deny`. */
  decision: z.enum(["allow", "deny", "approve", "block", "ask"]).optional(),
  reason: z.string().optional(),
  /** Hides a tool's output from people who watch the session. */
  suppressOutput: z.boolean().optional(),
  /** Passed to the model, like `additionalContext`. */
  systemMessage: z.string().optional(),
  /** With `continue: false`: the text for the person. */
  stopReason: z.string().optional(),
  hookSpecificOutput: z
    .object({
      /** Replaces the tool's arguments. */
      updatedInput: json.optional(),
      /** Passed to the model. */
      additionalContext: z.string().optional(),
      /** Replaces the tool's output; a value that is not a string is rendered as JSON. */
      updatedToolOutput: z.unknown().optional(),
      /** Takes precedence over `decision`. */
      permissionDecision: z.enum(["allow", "deny", "ask"]).optional(),
      permissionDecisionReason: z.string().optional(),
    })
    .optional(),
});
export type HookOutput = z.infer<typeof HookOutputSchema>;

export const hookRun = request({
  subject: "hook.run",
  server: "tool-runner",
  clients: ["agent-core"],
  // A hook can have external effects even when its reply is lost.
  idempotent: false,
  doc: "Run one configured hook. The runner reads the hook's command or URL from its own settings by name, so a message can only select among configured hooks. NOT_FOUND when the runner has no hook with that name for that event.",
  input: z.object({ hook: z.string(), payload: HookPayloadSchema }),
  output: z.discriminatedUnion("outcome", [
    /** It ran; the answer is empty when the hook decides nothing. */
    z.object({ outcome: z.literal("answered"), answer: HookOutputSchema }),
    /** It could not be started, timed out, ended with an error, or its output is invalid. */
    z.object({ outcome: z.literal("failed"), reason: z.string() }),
  ]),
});
export type HookResult = z.infer<typeof hookRun.output>;
