// The agent that answers when no other profile is named, and profiles: named agent configurations.
import { z } from "zod";
import { isolationLevels } from "./isolation.ts";

export const efforts = ["low", "medium", "high", "xhigh", "max"] as const;
export type Effort = (typeof efforts)[number];

const outputModes = ["final_text", "message_tool", "both"] as const;
/** `final_text`: the last text of a turn is the answer. `message_tool`: only what the tool `message` sends is. `both`: no text twice. */
export type OutputMode = (typeof outputModes)[number];

export const toolExecutions = ["readonly_parallel", "parallel", "serial"] as const;
export type ToolExecution = (typeof toolExecutions)[number];

/** What a profile may set apart from the agent; what it leaves out is the agent's. */
const profileFields = {
  /** Said to the model before everything else, after Parley's own words. */
  system_prompt: z.string().optional(),
  /** `rehearsal`, or a model id (`anthropic:` or `openai:` before it says who is asked). */
  model: z.string().optional(),
  effort: z.enum(efforts).optional(),
  thinking: z.enum(["off", "adaptive"]).optional(),
  max_output_tokens: z.number().int().min(1).max(128_000).optional(),
};

export const AgentSettings = z
  .strictObject({
    ...profileFields,
    max_concurrent_turns: z.number().int().min(1).max(1024).default(64),
    max_output_tokens: z.number().int().min(1).max(128_000).default(16_384),
    thinking: z.enum(["off", "adaptive"]).default("adaptive"),
    /** IANA name of the time zone in which the model is told the time. */
    time_zone: z.string().default("UTC"),
    /** What is done when an answer reaches `max_output_tokens`, in order, until something helps. */
    on_max_tokens: z.array(z.enum(["nudge", "compact", "exit"])).default(["nudge", "exit"]),
    /** How long a person has to answer a question of the agent's. */
    question_seconds: z.number().int().min(1).max(86_400).default(900),
    /** Nudges in a row ("you were cut off, go on more briefly"). */
    max_nudges: z.number().int().min(0).max(20).default(3),
  })
  .prefault({});

export const OutputSettings = z
  .strictObject({
    mode: z.enum(outputModes).default("final_text"),
    /** `message_tool`: what happens when a turn ends without having said anything. */
    unspoken: z.enum(["deliver", "log", "reprompt"]).default("reprompt"),
  })
  .prefault({});

const modelName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, "must be a name such as `researcher`");

export const ProfileSettings = z.strictObject({
  ...profileFields,
  /** Said to the model that may choose this profile. */
  description: z.string().optional(),
  /** Names of tools; an empty list means none. Left out: the six that only read. */
  tools: z.array(z.string()).optional(),
  /** `full`: the whole prompt. `minimal`: identity, tools, workspace and AGENTS.md. */
  prompt: z.enum(["full", "minimal"]).default("minimal"),
  max_iterations: z.number().int().min(0).optional(),
  max_tool_calls: z.number().int().min(0).optional(),
  /** US dollars one run may cost; 0 = no limit of its own. */
  max_usd: z.number().min(0).optional(),
  max_turn_seconds: z.number().int().min(0).optional(),
  execution: z.enum(toolExecutions).optional(),
  /** What its commands need at least, where that is more than `tools.exec.min_isolation`. */
  min_isolation: z.enum(isolationLevels).optional(),
});
export type ProfileSettings = z.infer<typeof ProfileSettings>;
export const ProfilesSettings = z.record(modelName, ProfileSettings).default({});

export const SubagentSettings = z
  .strictObject({
    enabled: z.boolean().default(true),
    /** The name under which the model sees the tool; the others are understood as well. */
    tool_name: z.enum(["sessions_spawn", "delegate", "spawn", "Agent"]).default("sessions_spawn"),
    /** When the call does not say: wait for the result, or go on and be told. */
    mode: z.enum(["wait", "background"]).default("wait"),
    /** The profile when the call names none; `reader` (the six read-only tools) is always there. */
    profile: modelName.default("reader"),
    /** How deep agents may start agents; 1 = children have no children. */
    max_depth: z.number().int().min(1).max(5).default(1),
    /** Sub-agents of all agents that think at the same time. */
    max_concurrent: z.number().int().min(1).max(256).default(8),
    /** Children of one agent at work at the same time. */
    max_children: z.number().int().min(1).max(64).default(5),
    /** Model calls of one child; 0 = no limit. */
    max_iterations: z.number().int().min(0).default(20),
  })
  .prefault({});
