// Requests for documents.

import type { DocumentMeta } from "@parley/contracts";

import { api, type Answer } from "../cluster/api.ts";
import { RequestRejectedError, type Gateway } from "../cluster/gateway.ts";
import { CliError } from "../io/io.ts";

export type Document = Answer<typeof api.document>["document"];

/** A document with the author of each line, in order. */
export type AuthoredDocument = Answer<typeof api.authoredDocument>["document"];

/** Throws RequestRejectedError if it does not exist. */
export async function fetchDocument(gateway: Gateway, path: string, version?: number): Promise<Document> {
  return (await gateway.run(api.document, { path, version })).document;
}

/** Throws RequestRejectedError if it does not exist. */
export async function fetchAuthored(gateway: Gateway, path: string, version?: number): Promise<AuthoredDocument> {
  return (await gateway.run(api.authoredDocument, { path, version, authors: true })).document;
}

/** The newest version, which may be a removal. Throws CliError if the document never existed. */
export async function fetchNewest(gateway: Gateway, path: string): Promise<DocumentMeta> {
  const [newest] = (await gateway.run(api.documentHistory, { path, limit: 1 })).versions;
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
