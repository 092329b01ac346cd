// What the gateway answers about documents.

import { DocumentSchema, store, type DocumentMeta } from "@parley/contracts";
import { z } from "zod";

import type { Gateway } from "../cluster/gateway.ts";
import { Refused } from "../cluster/gateway.ts";
import { CliError } from "../errors.ts";

export const DocumentsAnswer = z.object({ documents: z.array(DocumentSchema) });
const DocumentAnswer = z.object({ document: DocumentSchema.extend({ content: z.string() }) });
const HistoryAnswer = store.documentHistory.output;
export const ChangedAnswer = z.object({ status: z.enum(["saved", "unchanged"]), document: DocumentSchema });

export type Document = z.infer<typeof DocumentAnswer>["document"];

/** Throws Refused where there is none. */
export async function fetchDocument(gateway: Gateway, path: string, version?: number): Promise<Document> {
  const query = new URLSearchParams({ path, ...(version === undefined ? {} : { version: String(version) }) });
  return (await gateway.get(`/api/documents/content?${query.toString()}`, DocumentAnswer)).document;
}

/** The most versions that one call brings. */
export const historyPage = 500;

/** The versions of a document, newest first; those before one with `before`, at most `limit`. */
export function fetchHistory(
  gateway: Gateway,
  path: string,
  { limit, before }: { limit: number; before?: number },
): Promise<z.infer<typeof HistoryAnswer>> {
  const query = new URLSearchParams({
    path,
    limit: String(limit),
    ...(before === undefined ? {} : { before: String(before) }),
  });
  return gateway.get(`/api/documents/history?${query.toString()}`, HistoryAnswer);
}

/** The newest version, which may have removed the document. Throws CliError where there never was one. */
export async function fetchNewest(gateway: Gateway, path: string): Promise<DocumentMeta> {
  const [newest] = (await fetchHistory(gateway, path, { limit: 1 })).versions;
  if (newest === undefined) throw new CliError(`There never was a document ${path}.`);
  return newest;
}

/** Somebody else changed it first. */
export function isConflict(error: unknown): error is Refused {
  return error instanceof Refused && error.status === 409;
}

export function isMissing(error: unknown): error is Refused {
  return error instanceof Refused && error.status === 404;
}
