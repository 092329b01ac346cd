// The structure of a Jupyter notebook, as `read` shows it and `notebook_edit` changes it. Pure.
import { z } from "zod";

/** Larger notebooks are shown as JSON and cannot be changed by cell. */
export const maxNotebookBytes = 5 * 1024 * 1024;

/** A text in nbformat: a string or a list of lines. */
export const Lines = z.union([z.string(), z.array(z.string()).transform((lines) => lines.join(""))]);

const Output = z.object({
  output_type: z.string(),
  text: Lines.optional(),
  /** Keys are media types. */
  data: z.record(z.string(), z.unknown()).optional(),
  ename: z.string().optional(),
  evalue: z.string().optional(),
});
export type NotebookOutput = z.infer<typeof Output>;

const Cell = z.object({
  cell_type: z.string(),
  /** Cells have one since nbformat 4.5. */
  id: z.string().optional().catch(undefined),
  source: Lines,
  execution_count: z.number().nullish(),
  outputs: z.array(Output).optional(),
});
export type NotebookCell = z.infer<typeof Cell>;

const Notebook = z.object({
  cells: z.array(Cell),
  nbformat: z.number().min(4),
  nbformat_minor: z.number().optional().catch(undefined),
});
export type Notebook = z.infer<typeof Notebook>;

/** `old`: a notebook in a format before nbformat 4. `other`: not a notebook. */
export type NotebookReading = { status: "read"; notebook: Notebook } | { status: "old" } | { status: "other" };

const OldNotebook = z.object({ nbformat: z.number().max(3), worksheets: z.array(z.unknown()) });

export function readNotebook(json: string): NotebookReading {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return { status: "other" };
  }
  const parsed = Notebook.safeParse(value);
  if (parsed.success) return { status: "read", notebook: parsed.data };
  return { status: OldNotebook.safeParse(value).success ? "old" : "other" };
}

/** A cell's type and id for its title, e.g. `code, id a1b2c3d4`. */
export function kindAndId({ cell_type: type, id }: Pick<NotebookCell, "cell_type" | "id">): string {
  return id === undefined ? type : `${type}, id ${id}`;
}
