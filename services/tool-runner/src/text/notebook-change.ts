// Applies a change of one cell to a notebook's text. Pure.
import { createHash } from "node:crypto";
import { kindAndId, readNotebook, type Notebook, type NotebookCell } from "./notebook.ts";
import { NotebookText } from "./notebook-text.ts";

type CellType = "code" | "markdown";

/** Identifies a cell by its id, by its number from 1, or by both if they mean the same cell. */
interface CellName {
  id?: string | undefined;
  number?: number | undefined;
}

export type CellChange =
  /** Without `type` the cell keeps its type. */
  | { mode: "replace"; cell: CellName; source: string; type?: CellType | undefined }
  /** Inserts after the named cell, or at the beginning without one. Where cells have ids, the new id derives from `idSeed`. */
  | { mode: "insert"; cell: CellName; source: string; type: CellType; idSeed: string }
  | { mode: "delete"; cell: CellName };

type Of<Mode extends CellChange["mode"]> = Extract<CellChange, { mode: Mode }>;

export type NotebookChange =
  /** `cell`: a title for messages. `cells`: the new number of cells. `cleared`: its outputs or execution count were removed. */
  | { status: "changed"; text: string; cell: string; cells: number; cleared: boolean }
  | { status: "same"; cell: string }
  | { status: "no_notebook" }
  | { status: "old_notebook" }
  /** Nested so deeply that the JSON parser exceeds its stack. */
  | { status: "too_deep" }
  /** `why` is a sentence. */
  | { status: "no_such_cell"; why: string };

export function changeNotebook(text: string, change: CellChange): NotebookChange {
  try {
    return changeCell(text, change);
  } catch (error) {
    if (error instanceof RangeError) return { status: "too_deep" };
    throw error;
  }
}

function changeCell(text: string, change: CellChange): NotebookChange {
  const reading = readNotebook(text);
  if (reading.status === "old") return { status: "old_notebook" };
  if (reading.status === "other") return { status: "no_notebook" };
  const { cells } = reading.notebook;
  const place = placeOf(cells, change.cell);
  if (typeof place === "object") return { status: "no_such_cell", why: place.why };
  if (change.mode === "insert") return insert(text, reading.notebook, place === undefined ? 0 : place + 1, change);
  const cell = place === undefined ? undefined : cells[place];
  if (place === undefined || cell === undefined) return { status: "no_such_cell", why: "No cell was named." };
  if (change.mode === "replace") return replace(text, reading.notebook, place, cell, change);
  const draft = new NotebookText(text);
  draft.remove(["cells", place]);
  return { status: "changed", text: draft.text, cell: titleOf(cell, place), cells: cells.length - 1, cleared: false };
}

/** The cell's index from 0; undefined when none is named. */
function placeOf(cells: readonly NotebookCell[], { id, number }: CellName): number | undefined | { why: string } {
  const many = `It has ${cells.length} ${cells.length === 1 ? "cell" : "cells"}`;
  if (number !== undefined && number > cells.length) return { why: `${many}, none with the number ${number}.` };
  const byNumber = number === undefined ? undefined : number - 1;
  if (id === undefined) return byNumber;
  const places = cells.flatMap((cell, index) => (cell.id === id ? [index] : []));
  const [first] = places;
  if (first === undefined) {
    const hasIds = cells.some((cell) => cell.id !== undefined);
    return { why: hasIds ? `${many}, none with the id "${id}".` : `${many} without ids: pass cell_number.` };
  }
  if (byNumber !== undefined) {
    if (places.includes(byNumber)) return byNumber;
    return {
      why: `The cell with the id "${id}" is cell ${first + 1}, not cell ${byNumber + 1}: pass only one of them.`,
    };
  }
  if (places.length === 1) return first;
  return { why: `Cells ${places.map((each) => each + 1).join(", ")} have the id "${id}": pass cell_number.` };
}

function replace(
  text: string,
  { cells }: Notebook,
  place: number,
  cell: NotebookCell,
  { source, type }: Of<"replace">,
): NotebookChange {
  const now = { ...cell, cell_type: type ?? cell.cell_type };
  const title = titleOf(now, place);
  const turned = now.cell_type !== cell.cell_type;
  if (source === cell.source && !turned) return { status: "same", cell: title };
  const draft = new NotebookText(text);
  const at = (key: string) => ["cells", place, key];
  if (source !== cell.source) {
    draft.set(at("source"), draft.kindOf(at("source")) === "string" ? source : linesOf(source));
  }
  if (turned) {
    draft.set(at("cell_type"), now.cell_type);
    for (const key of now.cell_type === "code" ? ["attachments"] : ["execution_count", "outputs"]) {
      draft.remove(at(key));
    }
  }
  if (now.cell_type === "code") {
    // The outputs belong to the previous source.
    draft.set(at("execution_count"), null);
    draft.set(at("outputs"), []);
  }
  const cleared = (cell.outputs ?? []).length > 0 || typeof cell.execution_count === "number";
  return { status: "changed", text: draft.text, cell: title, cells: cells.length, cleared };
}

function insert(text: string, notebook: Notebook, place: number, change: Of<"insert">): NotebookChange {
  const { cells, nbformat, nbformat_minor: minor = 0 } = notebook;
  const hasIds = nbformat > 4 || minor >= 5;
  const id = hasIds ? freshId(change.idSeed, cells) : undefined;
  const isCode = change.type === "code";
  // Keys in the order in which nbformat writes them.
  const cell = {
    cell_type: change.type,
    ...(isCode ? { execution_count: null } : {}),
    ...(id === undefined ? {} : { id }),
    metadata: {},
    ...(isCode ? { outputs: [] } : {}),
    source: linesOf(change.source),
  };
  const draft = new NotebookText(text);
  draft.insert(["cells", place], cell);
  const title = titleOf({ cell_type: change.type, id }, place);
  return { status: "changed", text: draft.text, cell: title, cells: cells.length + 1, cleared: false };
}

function titleOf(cell: Pick<NotebookCell, "cell_type" | "id">, place: number): string {
  return `cell ${place + 1} (${kindAndId(cell)})`;
}

/** A source as nbformat writes it: a list of lines, each with its line end. */
function linesOf(source: string): string[] {
  return source === "" ? [] : source.split(/(?<=\n)/);
}

/** Eight hexadecimal digits, as in Jupyter; not the id of an existing cell. */
function freshId(seed: string, cells: readonly NotebookCell[]): string {
  const taken = new Set(cells.map(({ id }) => id));
  for (let n = 0; ; n += 1) {
    const id = createHash("sha256").update(`${seed} ${n}`).digest("hex").slice(0, 8);
    if (!taken.has(id)) return id;
  }
}
