// Shared by the file tools: whether a path is a document, who writes, and the errors when the store is unavailable.
import { WireError } from "@parley/contracts";
import { failure, type ToolContext, type ToolOutput } from "../tool/tool.ts";
import { displayPath } from "../workspace/paths.ts";
import type { DocumentView, Writer } from "../documents/documents.ts";
import { isDocumentPath, normalPath } from "../documents/paths.ts";

export interface DocumentAccess {
  documents: DocumentView;
  /** Path from the workspace root; "" for the root itself, which contains both documents and files. */
  path: string;
}

/** Access to the documents at a path, which may (in the root) coexist with files; undefined when only the disk is concerned. */
export function documentsAt(path: string, { documents, workspace }: ToolContext): DocumentAccess | undefined {
  if (documents === null) return undefined;
  const normal = normalPath(path, workspace.root);
  if (normal === undefined || (normal !== "" && !isDocumentPath(normal))) return undefined;
  return { documents, path: normal };
}

/** Like `documentsAt`, for tools that take one file: the root does not count. */
export function resolveDocument(path: string, context: ToolContext): DocumentAccess | undefined {
  const access = documentsAt(path, context);
  return access?.path === "" ? undefined : access;
}

export function writerOf({ idempotencyKey }: ToolContext): Writer {
  return { idempotencyKey };
}

export function noSuchDocument(path: string): ToolOutput {
  return failure(`"${displayPath(path)}" does not exist.`);
}

/** The result of the work; when the store is unavailable or rejects the request, an error for the model. */
export async function orErrorText<R>(work: () => Promise<R>): Promise<R | ToolOutput> {
  try {
    return await work();
  } catch (error) {
    if (WireError.is(error, "TOO_LARGE", "INVALID_INPUT", "FORBIDDEN", "CONFLICT"))
      return failure(`Not written: ${error.message}.`);
    if (WireError.is(error, "UNAVAILABLE", "TIMEOUT"))
      return failure("The documents are currently unavailable: the store does not respond. Try again.");
    throw error;
  }
}
