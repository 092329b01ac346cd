// The command `parley skills list`.

import { api } from "../cluster/api.ts";
import { skillsTable } from "../tables/lists.ts";
import { request, type CommandSpec } from "./command.ts";

export const skillCommands: readonly CommandSpec[] = [
  request(
    {
      name: "skills list",
      summary: "list the skills, and why others are not loaded",
      details:
        "A skill is a document skills/<name>/SKILL.md; parley docs push uploads it. docs/skills.md describes its head.",
      examples: ["parley skills list", "parley skills list --json | jq '.problems'"],
    },
    async (gateway) => {
      const found = await gateway.run(api.skills);
      return { data: found, text: (paint) => skillsTable(found, paint) };
    },
  ),
];
