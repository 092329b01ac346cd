// The lines of a document: how they are counted, and their authors.
import type { DocumentAuthor } from "./documents.ts";

/** One letter per line; see `letterOf`. */
export type LineAuthors = string;

const letters = { owner: "o", import: "i", agent: "a", untrusted: "u" } as const satisfies Record<
  DocumentAuthor,
  string
>;
const byLetter = new Map<string, DocumentAuthor>(
  Object.entries(letters).map(([author, letter]) => [letter, author as keyof typeof letters]),
);

/** The lines as they are counted: a final line break begins no further line. */
export function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
}

export function letterOf(author: DocumentAuthor): string {
  return letters[author];
}

/** The author of the line at an index from 0; a line of unknown author is untrusted. */
export function authorAt(authors: LineAuthors, index: number): DocumentAuthor {
  return byLetter.get(authors[index] ?? "") ?? "untrusted";
}
