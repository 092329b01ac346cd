// Runs the jobs on whole texts. Pure.
import { predictChanges } from "./predict.ts";
import { patchContent } from "./patch/apply.ts";
import { changeNotebook } from "./notebook-change.ts";
import { notebookText } from "./read-notebook.ts";
import { replaceText } from "./replace-text.ts";
import type { TextJob, TextJobKind, TextJobs } from "./job.ts";

export function runTextJob(job: TextJob): TextJobs[TextJobKind]["answer"] {
  switch (job.kind) {
    case "patch":
      return patchContent(job.input);
    case "replace":
      return replaceText(job.input.text, job.input.oldText, job.input.newText, job.input.all);
    case "changeNotebook":
      return changeNotebook(job.input.text, job.input.change);
    case "showNotebook":
      return notebookText(job.input.text);
    case "predict":
      return predictChanges(job.input.command, job.input.directory);
    default:
      return job satisfies never;
  }
}

/** An opening brace or parenthesis takes as long as this many other characters, and nested ones take more; measured. */
const charactersPerBracket = 100;

/** An estimate of the work in characters; a patch reads its text once per hunk. */
export function workOf(job: TextJob): number {
  switch (job.kind) {
    case "patch":
      return job.input.content.length * Math.max(1, job.input.hunks.length);
    case "replace":
      return job.input.text.length + job.input.oldText.length + job.input.newText.length;
    case "changeNotebook":
    case "showNotebook":
      return job.input.text.length;
    case "predict":
      return job.input.command.length + charactersPerBracket * (job.input.command.match(/[({]/g)?.length ?? 0);
    default:
      return job satisfies never;
  }
}
