// The tool `grep`: lines by content.
import { markUntrusted } from "@parley/contracts";
import { z } from "zod";
import type { StoredDocument } from "../documents/client.ts";
import { untrustedLinesOf, type Untrusted } from "../documents/untrusted-lines.ts";
import type { SearchHit } from "../search/hits.ts";
import { defineTool, success, type ToolContext } from "../tool/tool.ts";
import { notices, openScope } from "./search-scope.ts";

const defaultHits = 100;
const maxCharacters = 50_000;

export const grepTool = defineTool({
  name: "grep",
  aliases: ["Grep"],
  summary: "Find lines by a regular expression.",
  description:
    "Search text files with a regular expression (ripgrep syntax, with look-around). Each hit is shown as `path:line: text`. `.git`, `.parley` and `node_modules` are skipped unless path names them.",
  args: z.strictObject({
    pattern: z.string().min(1).max(1_000).describe("The regular expression.").meta({ modelSchema: "name_only" }),
    path: z.string().min(1).optional().describe("File or directory. Default: the workspace."),
    include: z.string().min(1).max(1_000).optional().describe("Glob of file names: `*.ts`."),
    ignore_case: z.boolean().optional().describe("Ignore case. Default false.").meta({ modelSchema: "name_only" }),
    mode: z.enum(["content", "files", "count"]).optional().describe("Lines (default), file names, or hits per file."),
    context: z.number().int().min(0).max(20).optional().describe("Lines around each hit."),
    limit: z.number().int().min(1).max(1_000).optional().describe("Maximum hits. Default 100."),
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
  limits: [
    "1,000 hits and 50,000 characters; 400 characters around the hit of a longer line; no lines above 4 MiB; 20 s of search.",
  ],
  run: async (args, context) => {
    const maxHits = args.limit ?? defaultHits;
    const answer = await openScope(
      args.path ?? ".",
      {
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
    const room = Math.min(maxCharacters, context.maxPageCharacters ?? maxCharacters);
    const fitting = answer.hits.slice(
      0,
      fittingLines(
        answer.hits.map(({ shown }) => shown),
        room,
      ),
    );
    const marked = await warned(fitting, answer.documents, context);
    // The warnings count towards the limit as well.
    const lines = marked.slice(0, fittingLines(marked, room));
    const cut = answer.hits.length - fitting.length + marked.length - lines.length;
    const all = notices(answer, maxHits);
    if (cut > 0) all.unshift(`[Truncated: ${cut} lines of the result do not fit. Narrow the search.]`);
    return { ...success([...(lines.length === 0 ? [none] : lines), ...all].join("\n")), files: filesOf(fitting) };
  },
});

/** The files of the hits: by their lines, or by their names (mode `files`) and numbers (mode `count`). */
function filesOf(hits: readonly SearchHit[]): Set<string> {
  return new Set(hits.map(({ shown, line }) => line?.path ?? shown.replace(/: \d+$/, "")));
}

/** How many lines fit within `room` characters. */
function fittingLines(lines: readonly string[], room: number): number {
  let characters = 0;
  const beyond = lines.findIndex((line) => (characters += line.length + 1) > room);
  return beyond < 0 ? lines.length : beyond;
}

/** The hits as shown to the model: untrusted lines of documents follow the warning. */
async function warned(
  hits: readonly SearchHit[],
  read: readonly StoredDocument[],
  { documents }: ToolContext,
): Promise<string[]> {
  const linesOf = new Map<string, Untrusted>();
  if (documents !== null) {
    const shown = new Set(hits.map(({ line }) => line?.path));
    const shownFiles = read.filter(({ path }) => shown.has(path));
    await Promise.all(shownFiles.map(async (each) => linesOf.set(each.path, await untrustedLinesOf(documents, each))));
  }
  return markUntrusted(hits.map(({ shown, line }) => ({ shown, untrusted: untrustedHit(line, linesOf) })));
}

/** Files on disk have no provenance per line: null ends no run of untrusted lines and begins none. */
function untrustedHit(line: SearchHit["line"], linesOf: ReadonlyMap<string, Untrusted>): boolean | null {
  if (line === null) return null;
  const untrusted = linesOf.get(line.path);
  return untrusted === undefined ? false : untrusted(line.number);
}
