// What a hook is told and what it may answer, and the subject by which agent-core has one carried out. Hooks are written by
// other people, in any language: their JSON has snake_case names, those that hooks of other agents have where these have any.
import { z } from "zod";
import { request } from "./contract.ts";
import { permissionModes } from "./settings/permissions.ts";
import { exitReasons } from "./turns.ts";

const everywhere = {
  session_id: z.string(),
  /** The routing key: which conversation this session belongs to. */
  session_key: z.string(),
  /** Null outside a turn. */
  turn_id: z.string().nullable(),
  permission_mode: z.enum(permissionModes),
  /** The profile the session runs under; null = the agent itself. */
  profile: z.string().nullable(),
};

const toolUse = {
  tool_name: z.string(),
  tool_use_id: z.string(),
  /** The arguments; a text when what the model wrote is not JSON. */
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

/** What goes to a hook's standard input, or into the body of the post. The matcher is held against the field named first. */
const HookPayloadSchema = z.discriminatedUnion("hook_event_name", [
  z.object({
    hook_event_name: z.literal("SessionStart"),
    ...everywhere,
    /** `startup`: its first turn. `resume`: an old one is spoken to again. `compact`: it goes on after a compaction. */
    source: z.enum(["startup", "resume", "clear", "fork", "compact"]),
  }),
  z.object({
    hook_event_name: z.literal("UserPromptSubmit"),
    ...everywhere,
    /** Who speaks: `user`, `webhook`, `cron`, … */
    origin: z.string(),
    prompt: z.string(),
  }),
  z.object({ hook_event_name: z.literal("PreToolUse"), ...everywhere, ...toolUse }),
  z.object({
    hook_event_name: z.literal("PostToolUse"),
    ...everywhere,
    ...toolUse,
    /** The text the model will be shown. */
    tool_response: z.string(),
  }),
  z.object({
    hook_event_name: z.literal("PostToolUseFailure"),
    ...everywhere,
    ...toolUse,
    /** The text the model will be shown. */
    error: z.string(),
  }),
  z.object({
    hook_event_name: z.literal("PermissionRequest"),
    ...everywhere,
    ...toolUse,
    /** Why a person would be asked. */
    reason: z.string(),
  }),
  z.object({
    hook_event_name: z.literal("PreCompact"),
    ...everywhere,
    ...compaction,
    /** Null when nobody knows. */
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
    /** Null when nothing was summarised. */
    summary: z.string().nullable(),
  }),
  z.object({
    hook_event_name: z.literal("Stop"),
    ...everywhere,
    exit_reason: z.enum(exitReasons),
    last_assistant_message: z.string(),
    /** The turn goes on already because a Stop hook wanted it to. */
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
    /** What the person is told about: `permission_prompt`, `limit`, … */
    notification_type: z.string(),
    message: z.string(),
  }),
]);
export type HookPayload = z.infer<typeof HookPayloadSchema>;

/** Of a hook that prints more than this, or answers with more, nothing is believed. */
export const maxHookOutputBytes = 64 * 1024;

const json = z.record(z.string(), z.unknown());

/** What a hook may print. Everything may be left out, and names that are not here are not read. */
export const HookOutputSchema = z.object({
  /** `false` ends the turn. */
  continue: z.boolean().optional(),
  /** `approve` and `block` are older words for `allow` and `deny`. */
  decision: z.enum(["allow", "deny", "approve", "block", "ask"]).optional(),
  reason: z.string().optional(),
  /** Keeps a tool's output from the people who watch. */
  suppressOutput: z.boolean().optional(),
  /** Said to the model, as `additionalContext` is. */
  systemMessage: z.string().optional(),
  /** With `continue: false`: what the person is told. */
  stopReason: z.string().optional(),
  hookSpecificOutput: z
    .object({
      /** In place of the tool's arguments. */
      updatedInput: json.optional(),
      /** Said to the model. */
      additionalContext: z.string().optional(),
      /** In place of what the tool answered; what is not a text is shown as JSON. */
      updatedToolOutput: z.unknown().optional(),
      /** Wins over `decision`. */
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
  // What a hook does outside may have been done when the reply is lost.
  idempotent: false,
  doc: "Carry out one configured hook. The runner takes the command or the address from its own settings by the hook's name: the message can choose among the configured hooks and nothing else. NOT_FOUND when the runner has no hook of that name for that event.",
  input: z.object({ hook: z.string(), payload: HookPayloadSchema }),
  output: z.discriminatedUnion("outcome", [
    /** It ran; without an opinion the answer is empty. */
    z.object({ outcome: z.literal("answered"), answer: HookOutputSchema }),
    /** It could not be run, took too long, ended with an error, or said what cannot be understood. */
    z.object({ outcome: z.literal("failed"), reason: z.string() }),
  ]),
});
export type HookResult = z.infer<typeof hookRun.output>;
