// Formats the authors of a document's lines, and the untrusted lines to review. Pure.

import { type DocumentAuthor, linesOf } from "@parley/contracts";
import { pluralize } from "@parley/kit";

import { asTyped } from "../io/command-name.ts";
import type { AuthoredDocument } from "./documents.ts";
import type { Paint } from "../io/io.ts";
import { escapeInvisible } from "../tables/format.ts";

interface Line {
  /** From 1. */
  readonly number: number;
  readonly text: string;
  readonly author: DocumentAuthor;
}

const widestAuthor = "untrusted".length;

function written({ content, authors }: Pick<AuthoredDocument, "content" | "authors">): Line[] {
  return linesOf(content).map((text, at) => ({ number: at + 1, text, author: authors[at] ?? "untrusted" }));
}

/** The untrusted lines, without empty ones. */
export function untrustedLines(document: Pick<AuthoredDocument, "content" | "authors">): Line[] {
  return written(document).filter(({ author, text }) => author === "untrusted" && text.trim() !== "");
}

/** Whether all lines are already the owner's. */
export function isOwners({ author, authors }: Pick<AuthoredDocument, "author" | "authors">): boolean {
  return author === "owner" && authors.every((each) => each === "owner");
}

/** Every line preceded by its author. */
export function authoredText(document: Pick<AuthoredDocument, "content" | "authors">, paint: Paint): string {
  return written(document)
    .map(({ author, text }) => {
      const shown = author.padEnd(widestAuthor);
      return author === "untrusted"
        ? `${paint("yellow", shown)}  ${paint("yellow", escapeInvisible(text))}\n`
        : `${paint("dim", shown)}  ${escapeInvisible(text)}\n`;
    })
    .join("");
}

/** The note below the lines of the newest version: how to mark untrusted lines as trusted. */
export function authoredNote(document: AuthoredDocument): string {
  const count = untrustedLines(document).length;
  const head = `Version ${document.version}`;
  if (count === 0) return `${head}; no lines are untrusted.`;
  return `${head}; ${linesAre(count)} untrusted. To mark them as trusted: ${asTyped("parley docs vouch")} ${document.path} --version ${document.version}`;
}

/** The text shown before the confirmation. */
export function vouchText(document: AuthoredDocument, paint: Paint): string {
  const untrusted = untrustedLines(document);
  if (untrusted.length === 0)
    return `No line of ${document.path} is untrusted; what the agent or an import wrote becomes yours.`;
  const width = String(untrusted.at(-1)?.number ?? 0).length;
  const rows = untrusted.map(
    ({ number, text }) => `${paint("dim", String(number).padStart(width))}  ${paint("yellow", escapeInvisible(text))}`,
  );
  return [
    `${linesAre(untrusted.length, ` of ${document.path}`)} untrusted:`,
    "",
    ...rows,
    "",
    "Once trusted, the agent may follow these lines, and reading them no longer makes its calls need approval.",
  ].join("\n");
}

/** `1 line is`, `2 lines are`. */
function linesAre(count: number, of = ""): string {
  return `${pluralize(count, "line")}${of} ${count === 1 ? "is" : "are"}`;
}
