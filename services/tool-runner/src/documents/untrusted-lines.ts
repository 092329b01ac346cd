// Determines which lines of a document need the warning about untrusted content before a tool shows them.
import { authorAt, linesOf } from "@parley/contracts";
import type { StoredDocument } from "./client.ts";
import type { DocumentView } from "./documents.ts";

/** For a line number, from 1: whether an untrusted author contributed to it; null for a blank line. */
export type Untrusted = (number: number) => boolean | null;

/** Loads the line authors of this version from the store unless they are cached. */
export async function untrustedLinesOf(documents: DocumentView, document: StoredDocument): Promise<Untrusted> {
  const authors = await documents.authors(document);
  const texts = linesOf(document.content);
  return (number) => ((texts[number - 1] ?? "").trim() === "" ? null : authorAt(authors, number - 1) === "untrusted");
}

/** Whether an untrusted author contributed to any of its lines. */
export async function hasUntrusted(documents: DocumentView, document: StoredDocument): Promise<boolean> {
  const untrusted = await untrustedLinesOf(documents, document);
  return linesOf(document.content).some((_, index) => untrusted(index + 1) === true);
}
