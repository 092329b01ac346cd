// `memory_write`: appends to a note. The store records the author of the lines and whether they are untrusted.
import { store, WireError } from "@parley/contracts";
import { z } from "zod";
import { formatEntry, headingOf, noteCategories, notePath, notePathProblem } from "../memory/note-path.ts";
import { localTool } from "./local-tool.ts";
import { operationId } from "./operation-id.ts";

export const memoryWriteTool = localTool({
  name: "memory_write",
  aliases: ["memory_store"],
  summary: "Write something down in your memory.",
  description:
    "Append an entry to your memory: short, and clear without this conversation. To change existing text, use edit.",
  input: z.object({
    content: z.string().trim().min(1).describe("The entry to remember.").meta({ modelSchema: "name_only" }),
    category: z
      .enum(noteCategories)
      .default("core")
      .describe("core: MEMORY.md (lasting facts). daily: today's note. conversation: this conversation's note."),
    path: z.string().optional().describe("A note (memory/….md) instead of a category."),
  }),
  examples: [{ content: "Anna likes green tea." }, { content: "Called the plumber.", category: "daily" }],
  class: "idempotent",
  readOnly: false,
  risk: "low",
  effects: ["writes_memory"],
  async run({ content, category, path: requestedPath }, { leaderStore, turn, step, tainted }) {
    // The turn's start, not the current time: a call that runs again after midnight must report the note of its first run, because the
    // store has already written the operation.
    const startedAt = new Date(turn.startedAt);
    const path = requestedPath ?? notePath(category, turn.sessionId, startedAt);
    const problem = notePathProblem(path);
    if (problem !== null) return { status: "failed", content: problem };
    try {
      const saved = await leaderStore.request(store.memoryAppend, {
        opId: operationId(step),
        turnId: turn.turnId,
        path,
        heading: headingOf(path),
        text: formatEntry(content, path, startedAt),
        author: tainted ? "untrusted" : "agent",
      });
      if (saved.status !== "saved") return { status: "failed", content: `Not written: ${saved.reason}.` };
      const lines =
        saved.fromLine === saved.toLine ? `line ${saved.fromLine}` : `lines ${saved.fromLine} to ${saved.toLine}`;
      const marked = tainted ? ", marked as untrusted: this turn has read untrusted content" : "";
      return { status: "done", content: `Written to ${path}, ${lines}${marked}.` };
    } catch (error) {
      if (!WireError.is(error, "TOO_LARGE", "INVALID_INPUT")) throw error;
      return { status: "failed", content: `Not written: ${error.message}.` };
    }
  },
});
