// The tool `notebook_edit`: changes one cell of a Jupyter notebook. Its class is `once`: a second run would insert a second cell,
// or delete the next one.
import { z } from "zod";
import type { Edited } from "../documents/documents.ts";
import { formatCall, defineTool, failure, success, type ToolOutput } from "../tool/tool.ts";
import { editText } from "./edit-file.ts";
import { maxNotebookBytes } from "../text/notebook.ts";
import type { CellChange, NotebookChange } from "../text/notebook-change.ts";
import { runOnText } from "../text/text-worker.ts";

const Args = z
  .strictObject({
    path: z.string().min(1).describe("The notebook (.ipynb), relative to the workspace."),
    cell_id: z.string().min(1).optional().describe("The cell's id, as shown by read. Alternative: cell_number."),
    cell_number: z
      .number()
      .int()
      .min(1)
      .optional()
      .describe("The cell's number from 1, as shown by read. It changes when earlier cells are inserted or deleted."),
    new_source: z.string().optional().describe("The complete new text of the cell. Not for delete."),
    cell_type: z
      .enum(["code", "markdown"])
      .optional()
      .describe("The cell's type. Required for insert; replace keeps the current type by default."),
    edit_mode: z
      .enum(["replace", "insert", "delete"])
      .optional()
      .describe(
        "replace (default), insert (a new cell after the named cell, or at the beginning if none is named), or delete.",
      ),
  })
  .superRefine(({ cell_id: id, cell_number: number, new_source: source, cell_type: type, edit_mode: mode }, issues) => {
    const needs = (field: string, message: string) => issues.addIssue({ code: "custom", path: [field], message });
    if (mode === "insert" && type === undefined) needs("cell_type", "required for insert: code or markdown");
    if (mode !== "delete" && source === undefined) needs("new_source", "required: the complete text of the cell");
    if (mode !== "insert" && id === undefined && number === undefined)
      needs("cell_number", "name the cell by cell_id or cell_number, as shown by read");
  });
type Args = z.infer<typeof Args>;

export const notebookEditTool = defineTool({
  name: "notebook_edit",
  aliases: ["NotebookEdit"],
  summary: "Edit cells of a Jupyter notebook.",
  description:
    "Replace, insert or delete one cell of a Jupyter notebook (.ipynb). Read the notebook first: read shows each cell's number and id. Changing the text of a code cell clears its outputs; nothing is run. The rest of the file is not changed. Create a new notebook with write.",
  args: Args,
  examples: [
    { path: "analysis.ipynb", cell_number: 3, new_source: "df = load()\ndf.head()" },
    {
      path: "analysis.ipynb",
      cell_id: "a1b2c3d4",
      new_source: "## Results",
      cell_type: "markdown",
      edit_mode: "insert",
    },
    { path: "analysis.ipynb", cell_id: "a1b2c3d4", edit_mode: "delete" },
  ],
  class: "once",
  readOnly: false,
  risk: "medium",
  effects: ["reads_files", "writes_files"],
  resource: { kind: "path", argument: "path" },
  timeoutMs: 30_000,
  limits: ["Notebooks of nbformat 4 up to 5 MiB; one cell per call."],
  run: async (args, context) =>
    editText(
      args.path,
      {
        maxBytes: maxNotebookBytes,
        tooLarge: (name, bytes) =>
          `"${name}" has ${bytes} bytes; notebook_edit accepts notebooks of up to ${maxNotebookBytes} bytes. Make it smaller first: exec, jupyter nbconvert --clear-output --inplace.`,
        // The answer contains ids and types of cells.
        quotes: true,
        change: async (text, name) => {
          if (!name.endsWith(".ipynb")) return leave(notNotebook(name));
          const requested = changeOf(args, context.idempotencyKey);
          const change = await runOnText("changeNotebook", { text, change: requested }, context.signal);
          return answer(change, args, name);
        },
      },
      context,
    ),
});

function changeOf(args: Args, idSeed: string): CellChange {
  const { new_source: source = "", cell_type: type } = args;
  const cell = { id: args.cell_id, number: args.cell_number };
  if (args.edit_mode === "delete") return { mode: "delete", cell };
  if (args.edit_mode !== "insert") return { mode: "replace", cell, source, type };
  return { mode: "insert", cell, source, type: type ?? "code", idSeed };
}

/** The new text, and the tool's result. */
function answer(change: NotebookChange, { path, edit_mode: mode = "replace" }: Args, name: string): Edited<ToolOutput> {
  switch (change.status) {
    case "changed":
      return { text: change.text, answer: success(changeSummary(change, mode, name)) };
    case "same":
      return { text: undefined, answer: success(`"${name}" was not changed: ${change.cell} already has this text.`) };
    case "no_notebook":
      return leave(notNotebook(name));
    case "old_notebook":
      return leave(
        `"${name}" is a notebook of a format before nbformat 4; nothing was changed. Convert it first: exec, jupyter nbconvert --to notebook --nbformat 4 --inplace.`,
      );
    case "too_deep":
      return leave(`"${name}" is nested too deeply to be changed by cell; it was not changed. Use edit.`);
    case "no_such_cell":
      return leave(
        `Nothing was changed in "${name}". ${change.why} List its cells with: ${formatCall("read", { path })}`,
      );
    default:
      return change satisfies never;
  }
}

const done = { replace: "Replaced", insert: "Inserted", delete: "Deleted" };

function changeSummary(
  { cell, cells, cleared }: Extract<NotebookChange, { status: "changed" }>,
  mode: keyof typeof done,
  name: string,
): string {
  const what = `${done[mode]} ${cell} ${mode === "insert" ? "in" : "of"} "${name}"`;
  if (mode === "replace") return `${what}.${cleared ? " Its outputs were cleared." : ""}`;
  return `${what}. The notebook now has ${cells} ${cells === 1 ? "cell" : "cells"}; the numbers of later cells ${mode === "insert" ? "increase" : "decrease"} by one.`;
}

function notNotebook(name: string): string {
  return `"${name}" is not a Jupyter notebook (a .ipynb file of nbformat 4); it was not changed. Change text files with edit or write.`;
}

function leave(why: string): Edited<ToolOutput> {
  return { text: undefined, answer: failure(why) };
}
