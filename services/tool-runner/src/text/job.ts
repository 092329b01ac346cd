// The jobs of the text thread and their answers: work on whole texts whose cost depends on what people and models write. Types only.
import type { Change } from "../checkpoints/predict.ts";
import type { Hunk } from "../patch/parse.ts";
import type { CellChange, NotebookChange } from "../tools/notebook-change.ts";
import type { Replacement } from "../tools/replace-text.ts";

/** Each job by its kind: what it needs, and what it answers. */
export interface TextJobs {
  /** Applies hunks to the content of a file. `name`: what messages call the file. */
  patch: { input: { content: Uint8Array; hunks: readonly Hunk[]; name: string }; answer: PatchAnswer };
  /** Replaces a passage, as the tool `edit` does. */
  replace: { input: { text: string; oldText: string; newText: string; all: boolean }; answer: Replacement };
  /** Changes one cell of a notebook. */
  changeNotebook: { input: { text: string; change: CellChange }; answer: NotebookChange };
  /** A notebook's cells as text; undefined for what is none. */
  showNotebook: { input: { text: string }; answer: string | undefined };
  /** What a command line will probably change. */
  predict: { input: { command: string; directory: string }; answer: Change[] };
}

export type TextJobKind = keyof TextJobs;

/** As it is sent to the thread. */
export type TextJob = { [Kind in TextJobKind]: { kind: Kind; input: TextJobs[Kind]["input"] } }[TextJobKind];

export type PatchAnswer =
  | { status: "patched"; content: Uint8Array }
  /** `message` is for the model. */
  | { status: "refused"; message: string };
