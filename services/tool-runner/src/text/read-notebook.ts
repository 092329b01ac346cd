// Renders a Jupyter notebook as text: cells and their outputs; pictures are named, not shown. Pure.
import { kindAndId, Lines, readNotebook, type NotebookCell, type NotebookOutput } from "./notebook.ts";

/** Limit of each output of a cell. */
const maxOutputCharacters = 4_000;

/** Undefined when the text is not a notebook of nbformat 4. */
export function notebookText(json: string): string | undefined {
  const reading = readNotebook(json);
  if (reading.status !== "read") return undefined;
  return reading.notebook.cells.map((cell, index) => cellText(cell, index + 1)).join("\n\n");
}

function cellText(cell: NotebookCell, n: number): string {
  const { source, execution_count: run, outputs = [] } = cell;
  const ran = run === undefined || run === null ? "" : `, run as [${run}]`;
  const shown = outputs.map(outputText).filter((text) => text !== "");
  const printed = shown.length === 0 ? [] : [`[output of cell ${n}]`, ...shown];
  return [`[cell ${n}: ${kindAndId(cell)}${ran}]`, source.trimEnd(), ...printed].join("\n");
}

function outputText({ output_type: type, text, data = {}, ename, evalue }: NotebookOutput): string {
  if (type === "error") return `${ename ?? "error"}: ${cut(evalue ?? "")}`;
  const shownText = text ?? Lines.safeParse(data["text/plain"]).data;
  const pictures = Object.keys(data).filter((mediaType) => mediaType.startsWith("image/"));
  return [...(shownText === undefined ? [] : [cut(shownText)]), ...pictures.map((each) => `[${each}, not shown]`)].join(
    "\n",
  );
}

function cut(text: string): string {
  const clean = text.trimEnd();
  if (clean.length <= maxOutputCharacters) return clean;
  return `${clean.slice(0, maxOutputCharacters).toWellFormed()}\n[${clean.length - maxOutputCharacters} more characters]`;
}
