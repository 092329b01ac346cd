// The lines of a document: how they are counted, their authors, and how a person marks them as trusted.
import { z } from "zod";
import { request } from "../contract.ts";
import { ChangeSchema, DocumentPath, type DocumentAuthor } from "./documents.ts";

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

export const documentLines = request({
  subject: "store.document.lines",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Get the author of each line of one version of a document. Null when that version never existed.",
  input: z.object({ path: DocumentPath, version: z.number().int().min(1) }),
  output: z.object({
    /** One letter per line: o(wner), i(mport), a(gent), u(ntrusted). */
    authors: z
      .string()
      .regex(/^[oiau]*$/)
      .nullable(),
  }),
});

export const documentVouch = request({
  subject: "store.document.vouch",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Mark every line of the current text as the owner's, in a new version with the same text. `unchanged` when all lines already are. NOT_FOUND when there is no such document.",
  input: z.object({
    opId: z.uuid(),
    path: DocumentPath,
    /** The newest version that the owner has read: only text that they have seen can be marked as trusted. */
    expectedVersion: z.number().int().min(1),
  }),
  output: ChangeSchema,
});
