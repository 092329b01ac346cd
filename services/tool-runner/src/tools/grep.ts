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
    "Find lines in the workspace's text files by a regular expression (JavaScript syntax). Hits are `path:line: text`; with mode files only the paths, with mode count `path: number`. `.git`, `.parley` and `node_modules` are left out unless path names them. At most 100 hits unless limit says otherwise.",
  args: z.strictObject({
    pattern: z.string().min(1).max(1_000).describe("The regular expression."),
    path: z.string().min(1).optional().describe("The file or directory to search. Default: the workspace."),
    include: z.string().min(1).max(1_000).optional().describe("Look only into files with such names, e.g. `*.ts`."),
    ignore_case: z.boolean().optional().describe("Default false."),
    mode: z
      .enum(["content", "files", "count"])
      .optional()
      .describe("Lines, names of files, or how many lines a file has. Default content."),
    context: z.number().int().min(0).max(20).optional().describe("Lines shown before and after each hit. Default 0."),
    limit: z.number().int().min(1).max(1_000).optional().describe("Most hits. Default 100."),
  }),
  examples: [
    { pattern: "TODO|FIXME", include: "*.ts" },
    { pattern: "invoice \\d+", path: "mail", ignore_case: true, context: 2 },
  ],
  class: "pure",
  readOnly: true,
  risk: "none",
  effects: ["reads_files"],
  timeoutMs: 30_000,
  limits: ["1,000 hits and 50,000 characters; of a longer line 400 characters around the hit; 20 s of search."],
  run: async (args, context) => {
    const maxHits = args.limit ?? defaultHits;
    const answer = await searchPlace(
      args.path ?? ".",
      {
        kind: "grep",
        glob: args.include ?? null,
        pattern: args.pattern,
        ignoreCase: args.ignore_case ?? false,
        mode: args.mode ?? "content",
        context: args.context ?? 0,
        maxHits,
      },
      context,
    );
    if (!("hits" in answer)) return answer;
    const none = `No match in ${answer.filesSeen} files.`;
    const { lines, cut } = withinCharacters(answer.hits, 50_000);
    const all = notices(answer, maxHits);
    if (cut)
      all.unshift(
        `[Cut: ${answer.hits.length - lines.length} lines of the answer do not fit. Narrow the search down.]`,
      );
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
