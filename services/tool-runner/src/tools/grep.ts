// The tool `grep`: lines by content.
import { z } from "zod";
import { defineTool, success } from "../tool.ts";
import { notices, searchPlace } from "./search-place.ts";

const defaultHits = 100;

export const grepTool = defineTool({
  name: "grep",
  aliases: ["Grep"],
  summary: "Find lines by a regular expression.",
  description:
    "Find lines in the workspace's text files by a regular expression (JavaScript syntax). Hits are `path:line: text`. `.git`, `.parley` and `node_modules` are left out unless path names them. At most 100 hits unless limit says otherwise.",
  args: z.strictObject({
    pattern: z.string().min(1).max(1_000).describe("The regular expression."),
    path: z.string().min(1).optional().describe("The file or directory to search. Default: the workspace."),
    include: z.string().min(1).max(1_000).optional().describe("Look only into files with such names, e.g. `*.ts`."),
    ignore_case: z.boolean().optional().describe("Default false."),
    limit: z.number().int().min(1).max(1_000).optional().describe("Most hits. Default 100."),
  }),
  class: "pure",
  readOnly: true,
  risk: "none",
  effects: ["reads_files"],
  timeoutMs: 30_000,
  run: async (args, context) => {
    const maxHits = args.limit ?? defaultHits;
    const answer = await searchPlace(
      args.path ?? ".",
      {
        kind: "grep",
        glob: args.include ?? null,
        pattern: args.pattern,
        ignoreCase: args.ignore_case ?? false,
        maxHits,
      },
      context,
    );
    if (!("hits" in answer)) return answer;
    const none = `No match in ${answer.filesSeen} files.`;
    const { lines, cut } = withinCharacters(answer.hits, 50_000);
    const all = notices({ ...answer, truncated: answer.truncated || cut }, lines.length);
    return success([...(lines.length === 0 ? [none] : lines), ...all].join("\n"));
  },
});

/** As many hits as fit the page. */
function withinCharacters(hits: readonly string[], maxCharacters: number): { lines: string[]; cut: boolean } {
  const lines: string[] = [];
  let characters = 0;
  for (const hit of hits) {
    characters += hit.length + 1;
    if (characters > maxCharacters) return { lines, cut: true };
    lines.push(hit);
  }
  return { lines, cut: false };
}
