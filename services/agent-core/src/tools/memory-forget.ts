// `memory_forget`: removes lines from a note.
import { store, type InputOf } from "@parley/contracts";
import { z } from "zod";
import { notePathProblem } from "../memory/note-path.ts";
import { localTool } from "./local-tool.ts";
import { operationId } from "./operation-id.ts";

export const memoryForgetTool = localTool({
  name: "memory_forget",
  aliases: [],
  summary: "Remove lines of a memory note.",
  description:
    "Remove lines from MEMORY.md or a note below memory/: a range of line numbers, as shown by memory_search and memory_get, or every line that contains a given text. Older versions stay in the note's history, which people can read.",
  input: z.object({
    path: z.string().describe("MEMORY.md, or memory/….md."),
    lines: z
      .string()
      .regex(/^\s*\d+\s*(?:-\s*\d+\s*)?$/, "must be a line or a range, such as 7 or 7-9")
      .optional()
      .describe("A line number or a range, such as 7 or 7-9."),
    text: z.string().min(3).optional().describe("Remove every line that contains this text; case is ignored."),
  }),
  examples: [{ path: "MEMORY.md", text: "likes coffee" }],
  class: "idempotent",
  readOnly: false,
  risk: "low",
  effects: ["writes_memory"],
  async run({ path, lines, text }, { leaderStore, turn, step, tainted }) {
    const problem = notePathProblem(path);
    if (problem !== null) return { status: "failed", content: problem };
    const selection = selectionOf(lines, text);
    if (selection === undefined)
      return { status: "failed", content: "Nothing was removed: give either `lines` or `text`, and not both." };
    const reply = await leaderStore.request(store.memoryForget, {
      opId: operationId(step),
      turnId: turn.turnId,
      path,
      what: selection,
      author: tainted ? "untrusted" : "agent",
    });
    if (reply.status !== "saved") return { status: "failed", content: `Nothing was removed: ${reply.reason}.` };
    return { status: "done", content: `Removed from ${path}:\n${reply.removed.map((line) => `> ${line}`).join("\n")}` };
  },
});

/** Undefined unless exactly one of both is given and the range is valid. */
function selectionOf(
  lines: string | undefined,
  text: string | undefined,
): InputOf<typeof store.memoryForget>["what"] | undefined {
  if ((lines === undefined) === (text === undefined)) return undefined;
  if (text !== undefined) return { by: "text", text };
  const [from = 0, to = from] = (lines ?? "").split("-").map(Number);
  return from < 1 || to < from ? undefined : { by: "lines", from, to };
}
