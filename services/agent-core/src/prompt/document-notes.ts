// Builds the note that informs the model of changed documents. The note is appended to the conversation; the system prompt
// stays unchanged. Pure.
import type { ContextSettings } from "@parley/contracts";
import {
  cutDocument,
  selectDocuments,
  type PromptDocument,
  type PromptDocuments,
  type Selection,
} from "./documents.ts";
import { readSkills, skillLine, type Skill } from "./skills.ts";
import { containsMarks, isWithin, markLines, untrustedNotice } from "./untrusted-markup.ts";

export interface NoteInput extends Selection {
  /** The documents the model saw last; see `DocumentCache.at`. */
  before: PromptDocuments;
  /** The current documents. */
  after: PromptDocuments;
  /** Whether a turn belongs to this session: the model already knows what it wrote in this session. */
  isOwnTurn: (turnId: string) => boolean;
  /** Whether a tool can read the omitted part of a document. */
  canRead: boolean;
  context: ContextSettings;
}

/** Longest text, in characters, that a note quotes in full; for a longer one it quotes the changed lines if they fit. */
const wholeChars = 2_000;
/** Unchanged lines shown before and after what has changed. */
const aroundLines = 2;

/** The note, or null if nothing relevant changed. */
export function documentNotes(input: NoteInput): string | null {
  const notes = [...changedDocuments(input), ...changedSkills(input)];
  return notes.length === 0 ? null : `[Documents have changed]\n\n${notes.join("\n\n")}`;
}

function changedDocuments(input: NoteInput): string[] {
  const before = new Map(selectDocuments(input.before, input).map((each) => [each.path, each]));
  const after = new Map(selectDocuments(input.after, input).map((each) => [each.path, each]));
  return [...new Set([...after.keys(), ...before.keys()])].flatMap((path) => {
    const was = before.get(path);
    const is = after.get(path);
    if (is === undefined) return isOwnRemoval(input, path) ? [] : [`${path} is now empty or was removed.`];
    if (isOwn(input, was, is)) return [];
    if (was === undefined) return [warned(`${path} was created. Content:`, cut(is, input))];
    const trust = trustChange(was, is);
    if (was.content.trim() !== is.content.trim() || trust === "some") return [reading(was, is, input)];
    return trust === "none" ? [] : [vouchedFor(path)];
  });
}

/** How the untrusted lines changed. `gone`: no line is untrusted any more. */
function trustChange(was: PromptDocument, is: PromptDocument): "none" | "gone" | "some" {
  if (JSON.stringify(was.untrusted) === JSON.stringify(is.untrusted)) return "none";
  return is.untrusted.length === 0 ? "gone" : "some";
}

function vouchedFor(path: string): string {
  return `${path} has the same content, but a person has marked it as trusted: it no longer contains untrusted lines.`;
}

/** `head` and `text`, with an explanation of the untrusted marks if the text contains any. */
function warned(head: string, text: string): string {
  return [head, ...(containsMarks(text) ? [untrustedNotice] : []), text].join("\n\n");
}

/** Whether this session wrote the only new version; several new versions may include one of another author. */
function isOwn({ before, isOwnTurn }: NoteInput, was: PromptDocument | undefined, is: PromptDocument): boolean {
  const known = was?.version ?? before.get(is.path)?.version ?? 0;
  return is.turnId !== null && isOwnTurn(is.turnId) && is.version === known + 1;
}

/** Whether this session itself emptied the document. */
function isOwnRemoval(input: NoteInput, path: string): boolean {
  const is = input.after.get(path);
  return is !== undefined && isOwn(input, input.before.get(path), is);
}

/** The full text if it is short, else the changed lines if they fit, else the text with its middle omitted. */
function reading(was: PromptDocument, is: PromptDocument, input: NoteInput): string {
  const changed = `${is.path} has changed.`;
  if (is.content.trim().length <= wholeChars)
    return warned(`${changed} New content:`, cutDocument(is, wholeChars, input.canRead));
  const { first, last, lines, total } = differing(was, is);
  const part = lines.join("\n");
  if (part.length <= wholeChars)
    return warned(
      `${changed} New content of lines ${first} to ${last} (of ${total}):`,
      markLines(part, first, is.untrusted),
    );
  return warned(`${changed} New content:`, cut(is, input));
}

/** The lines between the common beginning and the common end of both texts, with a few lines of context. */
function differing(
  before: PromptDocument,
  after: PromptDocument,
): { first: number; last: number; lines: string[]; total: number } {
  const old = linesWithTrust(before);
  const now = linesWithTrust(after);
  const common = Math.min(old.length, now.length);
  let head = 0;
  while (head < common && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < common - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const from = Math.max(0, head - aroundLines);
  const to = Math.min(now.length, now.length - tail + aroundLines);
  const lines = after.content.split("\n").slice(from, to);
  return { first: from + 1, last: to, lines, total: now.length };
}

/** Lines prefixed with their trust, so that a line whose trust changed counts as changed. */
function linesWithTrust({ content, untrusted }: PromptDocument): string[] {
  return content.split("\n").map((line, index) => `${isWithin(index + 1, untrusted) ? "untrusted" : ""} ${line}`);
}

function cut(document: PromptDocument, { canRead, context }: NoteInput): string {
  return cutDocument(document, context.max_document_chars, canRead);
}

function changedSkills(input: NoteInput): string[] {
  if (input.mode === "minimal" || !input.canRead) return [];
  const old = byLocation(input.before);
  const now = byLocation(input.after);
  const lines: string[] = [];
  for (const [location, skill] of now) {
    const was = input.before.get(location);
    const is = input.after.get(location);
    if (is === undefined || was?.version === is.version || isOwn(input, was, is)) continue;
    lines.push(`${skillLine(skill)} ${old.has(location) ? "[changed: read it again before you use it]" : "[new]"}`);
  }
  for (const [location, skill] of old) if (!now.has(location)) lines.push(`- ${skill.name} was removed (${location})`);
  return lines.length === 0 ? [] : [`Skills:\n${lines.join("\n")}`];
}

function byLocation(documents: PromptDocuments): Map<string, Skill> {
  return new Map(readSkills(documents).skills.map((skill) => [skill.location, skill]));
}
