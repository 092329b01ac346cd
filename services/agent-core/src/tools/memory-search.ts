// `memory_search`: what is known about something, from the notes and from what was said.
import { z } from "zod";
import type { Memory } from "../memory/memory.ts";
import { showHits } from "../memory/show.ts";
import { localTool, type LocalTool } from "./local-tool.ts";

const defaultResults = 6;

export function memorySearchTool(memory: Pick<Memory, "search">): LocalTool {
  return localTool({
    name: "memory_search",
    aliases: ["memory_recall"],
    summary: "Search your memory.",
    description:
      "Search your memory: MEMORY.md, the notes below memory/ and, where it is switched on, what was said in earlier conversations. Ask with the words that would stand there: names, places, things. Gives the best pieces with their place, lines, day and a score from 0 to 1.",
    input: z.object({
      query: z.string().min(1).describe("What you want to know, in the words it was written in."),
      max_results: z.number().int().min(1).max(50).default(defaultResults).describe("How many pieces at most."),
      min_score: z.number().min(0).max(1).default(0).describe("Leave out what fits less; 0.3 is a good measure."),
    }),
    examples: [{ query: "which tea does Anna like", max_results: 5 }],
    class: "pure",
    readOnly: true,
    risk: "none",
    effects: [],
    async run({ query, max_results: limit, min_score: least }, { turn, storeTimeoutMs }) {
      const { hits, audience } = await memory.search(turn.turnId, query, limit, storeTimeoutMs);
      const good = hits.filter(({ score }) => score >= least);
      if (good.length > 0) return { status: "done", content: showHits(good, query) };
      if (audience === "none")
        return {
          status: "done",
          content: "There is no memory in this conversation: others read along, or nobody speaks.",
        };
      const left = hits.length === 0 ? "" : ` ${hits.length} pieces scored less than ${least}.`;
      return { status: "done", content: `Nothing in memory matches this.${left} Try other words, or fewer.` };
    },
  });
}
