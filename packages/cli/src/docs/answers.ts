// Schemas of the gateway's document responses, and requests for documents.

import { documentAuthors, DocumentSchema, store, type DocumentMeta } from "@parley/contracts";
import { z } from "zod";

import type { Gateway } from "../cluster/gateway.ts";
import { RequestRejectedError } from "../cluster/gateway.ts";
import { CliError } from "../errors.ts";

export const DocumentsAnswer = z.object({ documents: z.array(DocumentSchema) });
const DocumentAnswer = z.object({ document: DocumentSchema.extend({ content: z.string() }) });
const Authored = DocumentSchema.extend({ content: z.string(), authors: z.array(z.enum(documentAuthors)) });
const AuthoredAnswer = z.object({ document: Authored });
const HistoryAnswer = store.documentHistory.output;
export const ChangedAnswer = z.object({ status: z.enum(["saved", "unchanged"]), document: DocumentSchema });

export type Document = z.infer<typeof DocumentAnswer>["document"];

/** A document with the author of each line, in order. */
export type AuthoredDocument = z.infer<typeof Authored>;

/** Throws Refused if it does not exist. */
export async function fetchDocument(gateway: Gateway, path: string, version?: number): Promise<Document> {
  return (await gateway.get(`/api/documents/content?${contentQuery(path, version)}`, DocumentAnswer)).document;
}

/** Throws Refused if it does not exist. */
export async function fetchAuthored(gateway: Gateway, path: string, version?: number): Promise<AuthoredDocument> {
  const query = `${contentQuery(path, version)}&authors=true`;
  return (await gateway.get(`/api/documents/content?${query}`, AuthoredAnswer)).document;
}

function contentQuery(path: string, version: number | undefined): string {
  return new URLSearchParams({ path, ...(version === undefined ? {} : { version: String(version) }) }).toString();
}

/** The versions of a document, newest first, at most `limit`. */
export function fetchHistory(
  gateway: Gateway,
  path: string,
  { limit }: { limit: number },
): Promise<z.infer<typeof HistoryAnswer>> {
  const query = new URLSearchParams({ path, limit: String(limit) });
  return gateway.get(`/api/documents/history?${query.toString()}`, HistoryAnswer);
}

/** The newest version, which may be a removal. Throws CliError if the document never existed. */
export async function fetchNewest(gateway: Gateway, path: string): Promise<DocumentMeta> {
  const [newest] = (await fetchHistory(gateway, path, { limit: 1 })).versions;
  if (newest === undefined) throw new CliError(`There has never been a document ${path}.`);
  return newest;
}

/** True if somebody else changed the document first. */
export function isConflict(error: unknown): error is RequestRejectedError {
  return error instanceof RequestRejectedError && error.status === 409;
}

export function isMissing(error: unknown): error is RequestRejectedError {
  return error instanceof RequestRejectedError && error.status === 404;
}
