// A Jupyter notebook as text: its cells with what they have printed, pictures named and left out. Pure.
import { z } from "zod";

/** Larger ones are shown as the JSON they are. */
export const maxNotebookBytes = 5 * 1024 * 1024;
/** Of what one cell has printed. */
const maxOutputCharacters = 4_000;

const Lines = z.union([z.string(), z.array(z.string()).transform((lines) => lines.join(""))]);
const Output = z.object({
  output_type: z.string(),
  text: Lines.optional(),
  /** By media type. */
  data: z.record(z.string(), z.unknown()).optional(),
  ename: z.string().optional(),
  evalue: z.string().optional(),
});
const Cell = z.object({
  cell_type: z.string(),
  source: Lines,
  execution_count: z.number().nullish(),
  outputs: z.array(Output).optional(),
});
const Notebook = z.object({ cells: z.array(Cell), nbformat: z.number().min(4) });

/** Undefined where the text is no notebook of nbformat 4. */
export function notebookText(json: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  const parsed = Notebook.safeParse(value);
  if (!parsed.success) return undefined;
  return parsed.data.cells.map((cell, index) => cellText(cell, index + 1)).join("\n\n");
}

function cellText(
  { cell_type: type, source, execution_count: run, outputs = [] }: z.infer<typeof Cell>,
  n: number,
): string {
  const ran = run === undefined || run === null ? "" : `, run as [${run}]`;
  const shown = outputs.map(outputText).filter((text) => text !== "");
  const printed = shown.length === 0 ? [] : [`[output of cell ${n}]`, ...shown];
  return [`[cell ${n}: ${type}${ran}]`, source.trimEnd(), ...printed].join("\n");
}

function outputText({ output_type: type, text, data = {}, ename, evalue }: z.infer<typeof Output>): string {
  if (type === "error") return `${ename ?? "error"}: ${cut(evalue ?? "")}`;
  const said = text ?? Lines.safeParse(data["text/plain"]).data;
  const pictures = Object.keys(data).filter((mediaType) => mediaType.startsWith("image/"));
  return [...(said === undefined ? [] : [cut(said)]), ...pictures.map((each) => `[${each}, not shown]`)].join("\n");
}

function cut(text: string): string {
  const clean = text.trimEnd();
  if (clean.length <= maxOutputCharacters) return clean;
  return `${clean.slice(0, maxOutputCharacters).toWellFormed()}\n[${clean.length - maxOutputCharacters} more characters]`;
}
