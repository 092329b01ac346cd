// The tool `edit`: replaces a passage of a file. Its class is `once`: a second run would not find the passage, or would find
// it in the new text.
import { z } from "zod";
import type { Edited } from "../documents/documents.ts";
import { defineTool, failure, success, type ToolContext, type ToolOutput } from "../tool/tool.ts";
import { editText } from "./edit-file.ts";
import { maxCharacters } from "../text/replace-text.ts";
import { runOnText } from "../text/text-worker.ts";

const maxBytes = 10 * 1024 * 1024;

export const editTool = defineTool({
  name: "edit",
  aliases: ["edit_file", "Edit"],
  summary: "Replace a passage of a text file.",
  description:
    "Replace text in a file. old_text must occur exactly once, character for character and without line numbers: include enough context, or set replace_all.",
  args: z.strictObject({
    path: z.string().min(1).describe("Path in the workspace."),
    old_text: z.string().min(1).describe("Text to replace."),
    new_text: z.string().describe("Replacement text."),
    replace_all: z.boolean().optional().describe("Replace every occurrence."),
  }),
  examples: [
    { path: "src/app.ts", old_text: "const port = 80;", new_text: "const port = 8080;" },
    { path: "notes.md", old_text: "colour", new_text: "color", replace_all: true },
  ],
  class: "once",
  readOnly: false,
  risk: "medium",
  effects: ["reads_files", "writes_files"],
  resource: { kind: "path", argument: "path" },
  timeoutMs: 30_000,
  run: async (args, context) => {
    if (args.old_text === args.new_text) return failure("old_text and new_text are identical: nothing to change.");
    return editText(
      args.path,
      {
        maxBytes,
        tooLarge: (name, bytes) =>
          `"${name}" has ${bytes} bytes; edit accepts files of up to ${maxBytes} bytes. Use exec, e.g. sed.`,
        quotes: false,
        change: (text, name) => applyEdit(text, args, name, context),
      },
      context,
    );
  },
});

interface Passage {
  old_text: string;
  new_text: string;
  replace_all?: boolean | undefined;
}

/** The text with the passage replaced, and the tool's result. */
async function applyEdit(
  text: string,
  args: Passage,
  name: string,
  { signal }: ToolContext,
): Promise<Edited<ToolOutput>> {
  const { old_text: oldText, new_text: newText, replace_all: all = false } = args;
  const replacement = await runOnText("replace", { text, oldText, newText, all }, signal);
  if (replacement.status === "missing") {
    return leave(
      `old_text occurs 0 times in "${name}"; nothing was changed. Read the file again and copy the passage exactly, without line numbers.`,
    );
  }
  if (replacement.status === "ambiguous") {
    const { count } = replacement;
    const lines = replacement.lines.join(", ") + (count > replacement.lines.length ? " …" : "");
    return leave(
      `old_text occurs ${count} times in "${name}" (lines ${lines}); nothing was changed. Include more context, or set replace_all.`,
    );
  }
  if (replacement.status === "too_large") {
    return leave(
      `"${name}" would have ${replacement.characters} characters, more than the limit of ${maxCharacters}; nothing was changed. Use exec, e.g. sed.`,
    );
  }
  return {
    text: replacement.text,
    answer: success(
      replacement.count === 1
        ? `Edited "${name}" at line ${replacement.line}.`
        : `Edited "${name}": ${replacement.count} occurrences replaced, the first at line ${replacement.line}.`,
    ),
  };
}

function leave(why: string): Edited<ToolOutput> {
  return { text: undefined, answer: failure(why) };
}
