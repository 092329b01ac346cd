// The skills of the agent, as its leader reads them.
import { controlSkills, operations, type OutputOf } from "@parley/contracts";
import { implement } from "./operation.ts";
import { awaitService } from "./session-service.ts";

/** The leader reads changed documents first, and asks a tool-runner for requirements. */
const timeoutMs = 8_000;

export const skillOperations = [
  implement(
    operations.skillsList,
    (_input, { deps }) =>
      awaitService("agent-core", deps.bus.request(controlSkills, {}, { timeoutMs, attemptMs: timeoutMs })),
    skillsText,
  ),
];

function skillsText({ skills, problems }: OutputOf<typeof controlSkills>): string {
  if (skills.length === 0 && problems.length === 0)
    return "There are no skills. Write skills/<name>/SKILL.md and push it: npx parley docs push (docs/skills.md).";
  return [
    ...skills.map(({ name, description, missing }) => {
      const lacks = missing.length === 0 ? "" : ` (unavailable: requires ${missing.join(", ")})`;
      return `- ${name}${lacks}: ${description}`;
    }),
    ...problems.map(({ path, reason }) => `- ${path}: ${reason}`),
  ].join("\n");
}
