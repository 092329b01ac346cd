// The jobs of the text thread and their results: work on whole texts whose cost depends on their content. Types only.
import type { Change } from "./predict.ts";
import type { Hunk } from "./patch/parse.ts";
import type { CellChange, NotebookChange } from "./notebook-change.ts";
import type { Replacement } from "./replace-text.ts";

/** Input and result of each kind of job. */
export interface TextJobs {
  /** Applies hunks to the content of a file. `name`: the file's name in messages. */
  patch: { input: { content: Uint8Array; hunks: readonly Hunk[]; name: string }; answer: PatchAnswer };
  /** Replaces a passage, for the tool `edit`. */
  replace: { input: { text: string; oldText: string; newText: string; all: boolean }; answer: Replacement };
  /** Changes one cell of a notebook. */
  changeNotebook: { input: { text: string; change: CellChange }; answer: NotebookChange };
  /** Renders a notebook's cells as text; undefined when the text is not a notebook. */
  showNotebook: { input: { text: string }; answer: string | undefined };
  /** Predicts which files a command line changes. */
  predict: { input: { command: string; directory: string }; answer: Change[] };
}

export type TextJobKind = keyof TextJobs;

/** The message that is sent to the thread. */
export type TextJob = { [Kind in TextJobKind]: { kind: Kind; input: TextJobs[Kind]["input"] } }[TextJobKind];

export type PatchAnswer =
  | { status: "patched"; content: Uint8Array }
  /** `message` is for the model. */
  | { status: "refused"; message: string };
