// The lines of a document: how they are counted, who wrote which, and how a person vouches for them.
import { z } from "zod";
import { request } from "../contract.ts";
import { ChangeSchema, DocumentPath, type DocumentAuthor } from "./documents.ts";

/** One letter a line; see `letterOf`. */
export type LineAuthors = string;

const letters = { owner: "o", import: "i", agent: "a", untrusted: "u" } as const satisfies Record<
  DocumentAuthor,
  string
>;
const byLetter = new Map<string, DocumentAuthor>(
  Object.entries(letters).map(([author, letter]) => [letter, author as keyof typeof letters]),
);

/** The lines as they are counted: one behind a last line break is none. */
export function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
}

export function letterOf(author: DocumentAuthor): string {
  return letters[author];
}

/** Of the line at an index from 0; whose line nobody knows is not trusted. */
export function authorAt(authors: LineAuthors, index: number): DocumentAuthor {
  return byLetter.get(authors[index] ?? "") ?? "untrusted";
}

export const documentLines = request({
  subject: "store.document.lines",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Who wrote which line of one version of a document. Null when there never was such a version.",
  input: z.object({ path: DocumentPath, version: z.number().int().min(1) }),
  output: z.object({
    /** One letter a line: o(wner), i(mport), a(gent), u(ntrusted). */
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
  doc: "The text as it stands becomes the owner's, every line of it: a new version with the same text. `unchanged` when it is his already. NOT_FOUND when there is no such document.",
  input: z.object({
    opId: z.uuid(),
    path: DocumentPath,
    /** The newest version, as the owner has read it: nobody vouches for what they have not seen. */
    expectedVersion: z.number().int().min(1),
  }),
  output: ChangeSchema,
});
