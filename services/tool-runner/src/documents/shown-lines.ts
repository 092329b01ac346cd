// Whose the lines of a document are that a tool is about to show: which of them stand under the warning.
import { authorAt, linesOf } from "@parley/contracts";
import type { StoredDocument } from "./over-bus.ts";
import type { DocumentView } from "./seen-by.ts";

/** Of a line by its number, from 1: whether outsiders had a hand in it; null where it says nothing. */
export type Untrusted = (number: number) => boolean | null;

/** Asks the store where it has not yet said whose the lines of this version are. */
export async function untrustedLinesOf(documents: DocumentView, document: StoredDocument): Promise<Untrusted> {
  const authors = await documents.authors(document);
  const texts = linesOf(document.content);
  return (number) => ((texts[number - 1] ?? "").trim() === "" ? null : authorAt(authors, number - 1) === "untrusted");
}

/** Whether any line of it is one that outsiders had a hand in. */
export async function holdsUntrusted(documents: DocumentView, document: StoredDocument): Promise<boolean> {
  const untrusted = await untrustedLinesOf(documents, document);
  return linesOf(document.content).some((_, index) => untrusted(index + 1) === true);
}
