// The documents that belong in the prompt, and how they stand in it. Pure.
import { isPrivateDocument, rootDocuments, type ContextSettings, type LineRange } from "@parley/contracts";
import { cutText, missingFrom } from "./cut.ts";
import { holdsMarks, markLines, untrustedRemark } from "./untrusted.ts";

export interface PromptDocument {
  path: string;
  version: number;
  content: string;
  /** The lines that outsiders had a hand in, whoever wrote the version. */
  untrusted: readonly LineRange[];
  /** The turn whose tool call wrote it; null when it was a person. */
  turnId: string | null;
}

/** By path. */
export type PromptDocuments = ReadonlyMap<string, PromptDocument>;

/** `full`: the whole prompt. `minimal`: what a helper with one task needs. */
export type PromptMode = "full" | "minimal";

/** Whose conversation it is: what the agent remembers of its owner is for the owner alone. */
export type Audience = "owner" | "others";

export interface Selection {
  mode: PromptMode;
  audience: Audience;
  /** Days (YYYY-MM-DD) whose notes are shown, in this order. */
  dailyNotes: readonly string[];
}

/** Less room than this shows nothing worth having. */
const leastUsefulChars = 500;

/** The documents that the prompt shows, in its order; empty ones leave no trace. */
export function selectDocuments(documents: PromptDocuments, selection: Selection): PromptDocument[] {
  return pathsFor(selection).flatMap((path) => {
    const document = documents.get(path);
    return document === undefined || document.content.trim() === "" ? [] : [document];
  });
}

function pathsFor({ mode, audience, dailyNotes }: Selection): string[] {
  if (mode === "minimal") return ["AGENTS.md"];
  if (audience === "others") return rootDocuments.filter((path) => !isPrivateDocument(path));
  const notes = [...new Set(dailyNotes)].map((day) => `memory/${day}.md`);
  return rootDocuments.flatMap((path) => (path === "MEMORY.md" ? [path, ...notes] : [path]));
}

export interface ShownDocuments {
  text: string;
  /** Characters of the common limit that are left. */
  leftChars: number;
}

/**
 * The documents as the prompt shows them, each and all together within their limits; the marks of untrusted lines count for all of them
 * together. `canRead`: there is a tool to read the rest.
 */
export function showDocuments(
  documents: readonly PromptDocument[],
  { max_document_chars: maxEach, max_documents_chars: maxAll }: ContextSettings,
  canRead: boolean,
): ShownDocuments {
  let leftChars = maxAll;
  const shown: string[] = [];
  const left: PromptDocument[] = [];
  for (const document of documents) {
    const text = document.content.trim();
    const room = Math.min(maxEach, leftChars);
    if (text.length > room && room < leastUsefulChars) {
      left.push(document);
      continue;
    }
    const cut = cutDocument(document, room, canRead);
    leftChars -= cut.length;
    shown.push(framed(document.path, cut));
  }
  if (left.length > 0) {
    const names = left.map(({ path, content }) => `${path} (${content.trim().length} characters)`).join(", ");
    shown.push(`There was no room for ${names}.${canRead ? " Read them when you need them." : ""}`);
  }
  return { text: shown.join("\n\n"), leftChars: Math.max(0, leftChars) };
}

/** At most so many characters of the document, its untrusted lines marked, and how to read the rest. */
export function cutDocument({ path, content, untrusted }: PromptDocument, maxChars: number, canRead: boolean): string {
  const text = content.trim();
  const before = content.length - content.trimStart().length;
  return cutText(
    text,
    maxChars,
    (missing) => missingFrom(path, missing, text.length, canRead),
    (part, at) => markLines(part, content.slice(0, before + at).split("\n").length, untrusted),
  );
}

function framed(path: string, text: string): string {
  return `<document path="${path}">${holdsMarks(text) ? `\n(${untrustedRemark})` : ""}\n${text}\n</document>`;
}
