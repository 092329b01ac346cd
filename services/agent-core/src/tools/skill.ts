// `skill`: loads the instructions of a skill by its name, of the workspace or built in.
import { z } from "zod";
import type { Skill } from "../prompt/skills.ts";
import { localTool, type LocalTool } from "./local-tool.ts";

/** Provides the skills of the prompt. */
export interface SkillSource {
  current(): Promise<{ skills: readonly Skill[] }>;
}

export function skillTool(source: SkillSource): LocalTool {
  return localTool({
    name: "skill",
    aliases: ["Skill"],
    summary: "Load a skill.",
    description: "Load the instructions of a skill that the system prompt lists, before you begin work that it fits.",
    input: z.object({
      name: z.string().max(64).optional().describe("The skill's name."),
      skill: z.string().max(64).optional().describe("Alias of `name`.").meta({ modelSchema: "hidden" }),
      args: z.string().optional().describe("Has no effect: you know the request.").meta({ modelSchema: "hidden" }),
    }),
    examples: [{ name: "summarize" }],
    class: "pure",
    readOnly: true,
    risk: "none",
    effects: [],
    limits: ["64 characters of a name."],
    async run({ name, skill }) {
      const wanted = (name ?? skill ?? "").trim().replace(/^\//, "");
      const { skills } = await source.current();
      const found = skills.find((each) => each.name === wanted);
      if (found === undefined) {
        const known = skills.map((each) => each.name).join(", ");
        return { status: "failed", content: `There is no skill "${wanted}". Available: ${known || "none"}.` };
      }
      const lacks = found.missing.length === 0 ? "" : `\n\nUnavailable here: requires ${found.missing.join(", ")}.`;
      return { status: "done", content: `Skill ${found.name} (${found.location})${lacks}\n\n${found.body}` };
    },
  });
}
