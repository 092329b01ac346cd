// The skills of the prompt, and their requirements on the machine that runs the tools.
import { z } from "zod";
import { request } from "./contract.ts";

export const toolRequirements = request({
  subject: "tool.requirements",
  server: "tool-runner",
  clients: ["agent-core"],
  doc: "Check which of these programs and environment variables are missing where the tools run. Only names cross the bus, never values.",
  input: z.object({ bins: z.array(z.string()).max(1000), env: z.array(z.string()).max(1000) }),
  output: z.object({ missingBins: z.array(z.string()), missingEnv: z.array(z.string()) }),
});

const SkillSchema = z.object({
  name: z.string(),
  description: z.string(),
  /** Of its SKILL.md. */
  path: z.string(),
  /** Parley's own, for `context.built_in_skills`. */
  builtIn: z.boolean(),
  /** Whether the prompt contains the whole text. */
  always: z.boolean(),
  /** Unmet requirements; the agent can use the skill if empty. */
  missing: z.array(z.string()),
});

/** A skill that is not loaded. */
const SkillProblemSchema = z.object({
  /** Of the document or the folder. */
  path: z.string(),
  reason: z.string(),
});
export type SkillProblem = z.infer<typeof SkillProblemSchema>;

export const controlSkills = request({
  subject: "agent.control.skills",
  server: "agent-core",
  served: "leader",
  clients: ["channel-gateway"],
  doc: "Get the skills in the newest documents, sorted by name, and why others are not loaded.",
  input: z.object({}),
  output: z.object({ skills: z.array(SkillSchema), problems: z.array(SkillProblemSchema) }),
});
