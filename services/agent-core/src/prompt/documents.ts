// Selects the documents for the prompt and renders them. Pure.
import { isPrivateDocument, rootDocuments, type ContextSettings, type LineRange } from "@parley/contracts";
import { excerpt, missingFrom } from "./excerpt.ts";
import { containsMarks, markLines, untrustedNotice } from "./untrusted-markup.ts";

export interface PromptDocument {
  path: string;
  version: number;
  content: string;
  /** The untrusted lines, regardless of the author of this version. */
  untrusted: readonly LineRange[];
  /** The turn whose tool call wrote this version; null if a person wrote it. */
  turnId: string | null;
}

/** By path. */
export type PromptDocuments = ReadonlyMap<string, PromptDocument>;

/** `full`: all sections. `minimal`: the sections that a sub-agent needs. */
export type PromptMode = "full" | "minimal";

/** Who can read the conversation: only the owner may see the agent's memory of them. */
export type Audience = "owner" | "others";

export interface Selection {
  mode: PromptMode;
  audience: Audience;
  /** Days (YYYY-MM-DD) whose notes the prompt contains, in this order. */
  dailyNotes: readonly string[];
}

/** A shorter excerpt is not useful. */
const leastUsefulChars = 500;

/** The documents of the prompt, in its order, without empty ones. */
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

export interface RenderedDocuments {
  text: string;
  /** Unused characters of the limit that all documents share. */
  leftChars: number;
}

/**
 * The documents as text for the prompt, within the limit of each document and of all together; the marks of untrusted lines count
 * only towards the latter. `canRead`: whether a tool can read omitted parts.
 */
export function renderDocuments(
  documents: readonly PromptDocument[],
  { max_document_chars: maxEach, max_documents_chars: maxAll }: ContextSettings,
  canRead: boolean,
): RenderedDocuments {
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
    shown.push(`Omitted for lack of space: ${names}.${canRead ? " Read them when you need them." : ""}`);
  }
  return { text: shown.join("\n\n"), leftChars: Math.max(0, leftChars) };
}

/** At most `maxChars` characters of the document, with untrusted lines marked and, if truncated, the call that reads all of it. */
export function cutDocument({ path, content, untrusted }: PromptDocument, maxChars: number, canRead: boolean): string {
  const text = content.trim();
  const before = content.length - content.trimStart().length;
  return excerpt(
    text,
    maxChars,
    (missing) => missingFrom(path, missing, text.length, canRead),
    (part, at) => markLines(part, content.slice(0, before + at).split("\n").length, untrusted),
  );
}

function framed(path: string, text: string): string {
  return `<document path="${path}">${containsMarks(text) ? `\n(${untrustedNotice})` : ""}\n${text}\n</document>`;
}
