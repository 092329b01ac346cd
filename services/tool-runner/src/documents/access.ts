// What the file tools share about documents: whether a path is one, who writes, and what is said when the store cannot be asked.
import { WireError } from "@parley/contracts";
import { failure, type ToolContext, type ToolOutput } from "../tool.ts";
import { shown } from "../workspace/paths.ts";
import type { Writer } from "./documents.ts";
import { isDocumentPath, normalPath } from "./paths.ts";
import type { DocumentView } from "./seen-by.ts";

export interface DocumentAccess {
  documents: DocumentView;
  /** From the workspace's root; "" for the root itself, which documents and the disk share. */
  path: string;
}

/** Where documents answer for a path, alone or (in the root) beside the disk; undefined where only the disk does. */
export function documentsAt(path: string, { documents, workspace }: ToolContext): DocumentAccess | undefined {
  if (documents === null) return undefined;
  const normal = normalPath(path, workspace.root);
  if (normal === undefined || (normal !== "" && !isDocumentPath(normal))) return undefined;
  return { documents, path: normal };
}

/** The same for tools that take one file: the root is none. */
export function documentAt(path: string, context: ToolContext): DocumentAccess | undefined {
  const access = documentsAt(path, context);
  return access?.path === "" ? undefined : access;
}

export function writerOf({ idempotencyKey }: ToolContext): Writer {
  return { idempotencyKey };
}

export function noSuchDocument(path: string): ToolOutput {
  return failure(`"${shown(path)}" does not exist.`);
}

/** The work's result; where the store cannot be asked, or refuses, the sentence that says so. */
export async function inWords<R>(work: () => Promise<R>): Promise<R | ToolOutput> {
  try {
    return await work();
  } catch (error) {
    if (WireError.is(error, "TOO_LARGE", "INVALID_INPUT", "FORBIDDEN", "CONFLICT"))
      return failure(`Not written: ${error.message}.`);
    if (WireError.is(error, "UNAVAILABLE", "TIMEOUT"))
      return failure("The documents cannot be reached right now: the store does not answer. Try again.");
    throw error;
  }
}
