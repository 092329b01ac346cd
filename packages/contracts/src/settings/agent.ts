// The main agent, and profiles: named agent configurations.
import { z } from "zod";
import { isolationLevels } from "./isolation.ts";
import { ToolScope } from "./tool-scope.ts";

export const efforts = ["low", "medium", "high", "xhigh", "max"] as const;
export type Effort = (typeof efforts)[number];

const outputModes = ["final_text", "message_tool", "both"] as const;
/** `final_text`: the last text of a turn is the answer. `message_tool`: only texts sent by the tool `message` are. `both`: either, without duplicates. */
export type OutputMode = (typeof outputModes)[number];

export const toolExecutions = ["readonly_parallel", "parallel", "serial"] as const;
export type ToolExecution = (typeof toolExecutions)[number];

/** Settings that a profile can override; the main agent's settings apply to absent ones. */
const profileFields = {
  /** Added to the beginning of the prompt, after Parley's own text. */
  system_prompt: z.string().optional(),
  /** `rehearsal`, or a model id; the prefix `anthropic:` or `openai:` selects the provider. */
  model: z.string().optional(),
  effort: z.enum(efforts).optional(),
  thinking: z.enum(["off", "adaptive"]).optional(),
  max_output_tokens: z.number().int().min(1).max(128_000).optional(),
};

/** The model if the settings choose none and a key for Claude is set. */
export const defaultModel = "claude-sonnet-5-5";

export const AgentSettings = z
  .strictObject({
    ...profileFields,
    /** Names of the agent's own tools; profiles do not inherit them. Omitted: all tools. */
    tools: ToolScope.optional(),
    max_concurrent_turns: z.number().int().min(1).max(1024).default(64),
    max_output_tokens: z.number().int().min(1).max(128_000).default(16_384),
    thinking: z.enum(["off", "adaptive"]).default("adaptive"),
    /** IANA name of the time zone of times in the prompt. */
    time_zone: z.string().default("UTC"),
    /** Actions when an answer reaches `max_output_tokens`, tried in order until one succeeds. `compact`: only when the conversation, with this answer, has reached a trigger of [compaction]. */
    on_max_tokens: z.array(z.enum(["nudge", "compact", "exit"])).default(["nudge", "exit"]),
    /** Texts at which the model stops; the turn then ends with `stop_sequence`. Servers that do not support them ignore them. */
    stop_sequences: z.array(z.string().regex(/\S/).max(200)).max(4).default([]),
    /** How long a person has to answer a question of the agent. */
    question_seconds: z.number().int().min(1).max(86_400).default(900),
    /** Maximum consecutive nudges, which ask the model to continue more briefly. */
    max_nudges: z.number().int().min(0).max(20).default(3),
  })
  .prefault({});

export const OutputSettings = z
  .strictObject({
    mode: z.enum(outputModes).default("final_text"),
    /** `message_tool`: what happens when a turn ends without having sent a message. */
    unspoken: z.enum(["deliver", "log", "reprompt"]).default("reprompt"),
  })
  .prefault({});

const modelName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, "must be a name such as `researcher`");

export const ProfileSettings = z.strictObject({
  ...profileFields,
  /** Description for the model that selects a profile. */
  description: z.string().optional(),
  /** Names of tools; an empty list means none. Omitted: the six read-only tools. */
  tools: ToolScope.optional(),
  /** `full`: the whole prompt. `minimal`: identity, tools, workspace and AGENTS.md. */
  prompt: z.enum(["full", "minimal"]).default("minimal"),
  max_iterations: z.number().int().min(0).optional(),
  max_tool_calls: z.number().int().min(0).optional(),
  /** Maximum cost of one run in US dollars; 0: no separate limit. */
  max_usd: z.number().min(0).optional(),
  max_turn_seconds: z.number().int().min(0).optional(),
  execution: z.enum(toolExecutions).optional(),
  /** Minimum isolation of its commands, if stricter than `tools.exec.min_isolation`. */
  min_isolation: z.enum(isolationLevels).optional(),
});
export type ProfileSettings = z.infer<typeof ProfileSettings>;
export const ProfilesSettings = z.record(modelName, ProfileSettings).default({});

/** The profile that exists without settings: six read-only tools. */
export const readerProfileName = "reader";

/** The names of all profiles. */
export function profileNames({ profiles }: { profiles: Record<string, ProfileSettings> }): string[] {
  return [...new Set([readerProfileName, ...Object.keys(profiles)])];
}

export const SubagentSettings = z
  .strictObject({
    enabled: z.boolean().default(true),
    /** The tool's name in the prompt; the other names are accepted as well. */
    tool_name: z.enum(["sessions_spawn", "delegate", "spawn", "Agent"]).default("sessions_spawn"),
    /** Default of a call: wait for the result, or continue and get the result as input. */
    mode: z.enum(["wait", "background"]).default("wait"),
    /**
     * A task continues the session of the conversation's last sub-agent with the same profile, unless that one is at work: it then
     * remembers earlier tasks. False: every task has a new session, unless the call names one to resume.
     */
    reuse: z.boolean().default(false),
    /** The profile if the call names none; `reader` (the six read-only tools) always exists. */
    profile: modelName.default("reader"),
    /** Maximum nesting of agents; 1: children cannot start children. */
    max_depth: z.number().int().min(1).max(5).default(1),
    /** Maximum concurrent sub-agents of all agents. */
    max_concurrent: z.number().int().min(1).max(256).default(8),
    /** Maximum concurrent children of one agent. */
    max_children: z.number().int().min(1).max(64).default(5),
    /** Maximum model calls of one child; 0: no limit. */
    max_iterations: z.number().int().min(0).default(20),
  })
  .prefault({});
