// The tool `glob`: files by name.
import { z } from "zod";
import { defineTool, success } from "../tool/tool.ts";
import { notices, openScope } from "./search-scope.ts";

const maxHits = 500;

export const globTool = defineTool({
  name: "glob",
  aliases: ["Glob"],
  summary: "Find files by name.",
  description:
    "Find at most 500 workspace files by name: `*.ts` matches in any directory, `src/**/*.{ts,md}` from the search directory. Skips the same directories as grep.",
  args: z.strictObject({
    pattern: z.string().min(1).max(1_000).describe("*, ?, [a-z], {a,b}, ** for any directories."),
    path: z.string().min(1).optional().describe("Directory. Default: the workspace."),
  }),
  examples: [{ pattern: "**/*.md" }, { pattern: "*.{ts,js}", path: "src" }],
  class: "pure",
  readOnly: true,
  risk: "none",
  effects: ["reads_files"],
  timeoutMs: 30_000,
  run: async (args, context) => {
    const answer = await openScope(args.path ?? ".", { glob: args.pattern, pattern: null, maxHits }, context);
    if (!("hits" in answer)) return answer;
    if (answer.hits.length === 0) return success(["No file matches.", ...notices(answer, maxHits)].join("\n"));
    const names = answer.hits.map(({ shown }) => shown);
    return { ...success([...names, ...notices(answer, maxHits)].join("\n")), files: new Set(names) };
  },
});
