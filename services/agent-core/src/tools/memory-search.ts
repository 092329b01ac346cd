// `memory_search`: searches the notes and earlier conversations.
import { z } from "zod";
import type { Memory } from "../memory/memory.ts";
import { formatHits } from "../memory/format-hits.ts";
import { localTool, type LocalTool } from "./local-tool.ts";

const defaultResults = 6;

export function memorySearchTool(memory: Pick<Memory, "search">): LocalTool {
  return localTool({
    name: "memory_search",
    aliases: ["memory_recall"],
    summary: "Search your memory.",
    description:
      "Search MEMORY.md, the notes below memory/ and, if enabled, earlier conversations. Returns the best passages with source, lines, day and a score from 0 to 1.",
    input: z.object({
      query: z.string().min(1).describe("Words that the text would contain: names, places, things."),
      max_results: z
        .number()
        .int()
        .min(1)
        .max(50)
        .default(defaultResults)
        .describe("Maximum number of passages.")
        .meta({ modelSchema: "name_only" }),
      min_score: z.number().min(0).max(1).default(0).describe("Minimum score."),
    }),
    examples: [{ query: "which tea does Anna like", max_results: 5 }],
    class: "pure",
    readOnly: true,
    risk: "none",
    effects: [],
    async run({ query, max_results: limit, min_score: minScore }, { turn }) {
      const { hits, audience } = await memory.search(turn.turnId, query, limit);
      const good = hits.filter(({ score }) => score >= minScore);
      if (good.length > 0) return { status: "done", content: formatHits(good, query) };
      if (audience === "none")
        return {
          status: "done",
          content:
            "Memory is not available in this conversation: other people can read it, or it has no human participant.",
        };
      const left = hits.length === 0 ? "" : ` ${hits.length} passages scored less than ${minScore}.`;
      return { status: "done", content: `No matching passage in memory.${left} Try other words, or fewer.` };
    },
  });
}
