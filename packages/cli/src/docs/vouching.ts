// Whose lines a document holds, in words, and what a person would vouch for. Pure.

import { linesOf, type DocumentAuthor } from "@parley/contracts";

import type { Paint } from "../io.ts";
import { visible } from "../text.ts";
import type { AuthoredDocument } from "./answers.ts";

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

/** The lines that outsiders had a hand in; empty ones say nothing. */
export function untrustedLines(document: Pick<AuthoredDocument, "content" | "authors">): Line[] {
  return written(document).filter(({ author, text }) => author === "untrusted" && text.trim() !== "");
}

/** Whether there is nothing left to vouch for. */
export function isOwners({ author, authors }: Pick<AuthoredDocument, "author" | "authors">): boolean {
  return author === "owner" && authors.every((each) => each === "owner");
}

/** Every line with its author in front of it. */
export function authoredText(document: Pick<AuthoredDocument, "content" | "authors">, paint: Paint): string {
  return written(document)
    .map(({ author, text }) => {
      const shown = author.padEnd(widestAuthor);
      return author === "untrusted"
        ? `${paint("yellow", shown)}  ${paint("yellow", visible(text))}\n`
        : `${paint("dim", shown)}  ${visible(text)}\n`;
    })
    .join("");
}

/** What stands below the lines of the newest version: what to do about those of outsiders. */
export function authoredNote(document: AuthoredDocument): string {
  const count = untrustedLines(document).length;
  const head = `Version ${document.version}`;
  if (count === 0) return `${head}; no line of it is untrusted.`;
  return `${head}; ${linesAre(count)} untrusted. To vouch for it as it stands: parley docs vouch ${document.path} --version ${document.version}`;
}

/** What a person is shown before they are asked. */
export function vouchText(document: AuthoredDocument, paint: Paint): string {
  const untrusted = untrustedLines(document);
  if (untrusted.length === 0)
    return `No line of ${document.path} is untrusted; what the agent or an import wrote becomes yours.`;
  const width = String(untrusted.at(-1)?.number ?? 0).length;
  const rows = untrusted.map(
    ({ number, text }) => `${paint("dim", String(number).padStart(width))}  ${paint("yellow", visible(text))}`,
  );
  return [
    `Outsiders had a hand in ${counted(untrusted.length)} of ${document.path}:`,
    "",
    ...rows,
    "",
    "Once they are yours the agent takes them at their word: nobody is asked any more because a turn has read them.",
  ].join("\n");
}

export function counted(lines: number): string {
  return `${lines} ${lines === 1 ? "line" : "lines"}`;
}

function linesAre(count: number): string {
  return `${counted(count)} ${count === 1 ? "is" : "are"}`;
}
