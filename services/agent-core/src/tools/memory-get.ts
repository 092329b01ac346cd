// `memory_get`: reads lines of a note.
import { store } from "@parley/contracts";
import { z } from "zod";
import { notePathProblem } from "../memory/note-path.ts";
import { formatLines } from "../memory/format-hits.ts";
import { localTool } from "./local-tool.ts";

const defaultLines = 200;

export const memoryGetTool = localTool({
  name: "memory_get",
  aliases: [],
  summary: "Read lines of a memory note.",
  description:
    "Read numbered lines of MEMORY.md or of a note below memory/. A warning precedes lines that were written after reading untrusted content.",
  input: z.object({
    path: z.string().describe("MEMORY.md, or memory/….md as returned by memory_search."),
    from: z.number().int().min(1).default(1).describe("First line to read."),
    lines: z.number().int().min(1).max(2_000).default(defaultLines).describe("Number of lines."),
  }),
  examples: [{ path: "MEMORY.md" }, { path: "memory/2026-01-31.md", from: 20, lines: 40 }],
  class: "pure",
  readOnly: true,
  risk: "none",
  effects: [],
  async run({ path, from, lines }, { leaderStore, turn }) {
    const problem = notePathProblem(path);
    if (problem !== null) return { status: "failed", content: problem };
    const found = await leaderStore.request(store.memoryGet, { turnId: turn.turnId, path, from, lines });
    if (found.status !== "found") {
      const reason =
        found.status === "missing"
          ? `There is no note ${path}.`
          : "Notes can be read only in the owner's own conversations.";
      return { status: "failed", content: reason };
    }
    if (found.lines.length === 0)
      return { status: "failed", content: `There is no line ${from}: ${path} has ${found.total} lines.` };
    return { status: "done", content: formatLines(found) };
  },
});
