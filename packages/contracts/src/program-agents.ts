// Sub-agents that a program defines for its session.
import { z } from "zod";
import { efforts } from "./settings/agent.ts";

/** Maximum sub-agents of one session, and maximum size of their definitions as JSON, in characters. */
const maxAgents = 32;
const maxCharacters = 64_000;

/** Names of tools, or the beginning of names followed by `*`. */
const ToolNames = z.array(z.string().min(1).max(100)).max(100);

const ProgramAgentSchema = z.object({
  description: z.string().min(1).max(2_000),
  /** Its instructions. */
  prompt: z.string().max(20_000),
  /** Omitted: those of the agent that starts it. */
  tools: ToolNames.optional(),
  disallowedTools: ToolNames.optional(),
  model: z.string().min(1).max(200).optional(),
  effort: z.enum(efforts).optional(),
  /** Model calls of each task, in addition to the limit of the settings. */
  maxModelCalls: z.number().int().positive().max(999_999).optional(),
});
export type ProgramAgent = z.infer<typeof ProgramAgentSchema>;

export const ProgramAgentsSchema = z
  .record(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/), ProgramAgentSchema)
  .refine((agents) => Object.keys(agents).length <= maxAgents, `more than ${maxAgents} sub-agents`)
  .refine(
    (agents) => JSON.stringify(agents).length <= maxCharacters,
    `the definitions have more than ${maxCharacters} characters`,
  );

/** The definition of one sub-agent, in its own session. */
export const StartedAgentSchema = ProgramAgentSchema.extend({
  /** The profile of the agent that started it, whose tools are the most that it can have; null: the agent itself. */
  base: z.string().nullable(),
});
export type StartedAgent = z.infer<typeof StartedAgentSchema>;
