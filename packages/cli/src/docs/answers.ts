// What the gateway answers about documents.

import { DocumentSchema, store } from "@parley/contracts";
import { z } from "zod";

import type { Gateway } from "../cluster/gateway.ts";
import { Refused } from "../cluster/gateway.ts";

export const DocumentsAnswer = z.object({ documents: z.array(DocumentSchema) });
const DocumentAnswer = z.object({ document: DocumentSchema.extend({ content: z.string() }) });
export const HistoryAnswer = store.documentHistory.output;
export const ChangedAnswer = z.object({ status: z.enum(["saved", "unchanged"]), document: DocumentSchema });

export type Document = z.infer<typeof DocumentAnswer>["document"];

/** Throws Refused where there is none. */
export async function fetchDocument(gateway: Gateway, path: string, version?: string): Promise<Document> {
  const query = new URLSearchParams({ path, ...(version === undefined ? {} : { version }) });
  return (await gateway.get(`/api/documents/content?${query.toString()}`, DocumentAnswer)).document;
}

/** Somebody else changed it first. */
export function isConflict(error: unknown): error is Refused {
  return error instanceof Refused && error.status === 409;
}

export function isMissing(error: unknown): error is Refused {
  return error instanceof Refused && error.status === 404;
}
