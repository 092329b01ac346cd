// What is said to the model when documents have changed since it was told of them: the system prompt stays as it is, and a note
// is appended to the conversation. Pure.
import type { ContextSettings } from "@parley/contracts";
import {
  cutDocument,
  selectDocuments,
  type PromptDocument,
  type PromptDocuments,
  type Selection,
} from "./documents.ts";
import { readSkills, skillLine, type Skill } from "./skills.ts";
import { holdsMarks, isWithin, markLines, untrustedRemark } from "./untrusted.ts";

export interface NoteInput extends Selection {
  /** What the model was told last; see `DocumentCache.at`. */
  before: PromptDocuments;
  /** What there is now. */
  after: PromptDocuments;
  /** Whether a turn is one of this session's: what the agent wrote here it knows. */
  isOwnTurn: (turnId: string) => boolean;
  /** There is a tool to read the rest of what is cut. */
  canRead: boolean;
  context: ContextSettings;
}

/** A text of at most so many characters stands in a note whole; of a longer one only what has changed, where that is less. */
const wholeChars = 2_000;
/** Unchanged lines shown before and after what has changed. */
const aroundLines = 2;

/** The note, or null when there is nothing to say. */
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
    if (is === undefined) return isOwnRemoval(input, path) ? [] : [`${path} is empty now, or was removed.`];
    if (isOwn(input, was, is)) return [];
    if (was === undefined) return [warned(`${path} is new; it reads:`, cut(is, input))];
    const trust = trustChange(was, is);
    if (was.content.trim() !== is.content.trim() || trust === "some") return [reading(was, is, input)];
    return trust === "none" ? [] : [vouchedFor(path)];
  });
}

/** What has become of the untrusted lines. `gone`: there are none any more. */
function trustChange(was: PromptDocument, is: PromptDocument): "none" | "gone" | "some" {
  if (JSON.stringify(was.untrusted) === JSON.stringify(is.untrusted)) return "none";
  return is.untrusted.length === 0 ? "gone" : "some";
}

function vouchedFor(path: string): string {
  return `${path} reads as it did, and a person has vouched for it: none of its lines are untrusted any more.`;
}

/** `text` as it is shown, with a word on its marks where it holds some. */
function warned(head: string, text: string): string {
  return [head, ...(holdsMarks(text) ? [untrustedRemark] : []), text].join("\n\n");
}

/** The session wrote the one version that is new; more than one may hold what somebody else wrote between. */
function isOwn({ before, isOwnTurn }: NoteInput, was: PromptDocument | undefined, is: PromptDocument): boolean {
  const known = was?.version ?? before.get(is.path)?.version ?? 0;
  return is.turnId !== null && isOwnTurn(is.turnId) && is.version === known + 1;
}

/** It was emptied, by the session itself. */
function isOwnRemoval(input: NoteInput, path: string): boolean {
  const is = input.after.get(path);
  return is !== undefined && isOwn(input, input.before.get(path), is);
}

/** The whole text where it is short, else the lines that differ, else the text cut in the middle. */
function reading(was: PromptDocument, is: PromptDocument, input: NoteInput): string {
  const changed = `${is.path} has changed;`;
  if (is.content.trim().length <= wholeChars)
    return warned(`${changed} it now reads:`, cutDocument(is, wholeChars, input.canRead));
  const { first, last, lines, total } = differing(was, is);
  const part = lines.join("\n");
  if (part.length <= wholeChars)
    return warned(`${changed} lines ${first} to ${last} of ${total} now read:`, markLines(part, first, is.untrusted));
  return warned(`${changed} it now reads:`, cut(is, input));
}

/** The lines between what both texts begin with and what both end with, and a few around them. */
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

/** A line is another one when outsiders had a hand in it and have no longer, or the other way round. */
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
    lines.push(`${skillLine(skill)} ${old.has(location) ? "has changed: read it again before you use it" : "is new"}`);
  }
  for (const [location, skill] of old) if (!now.has(location)) lines.push(`- ${skill.name} is gone (${location})`);
  return lines.length === 0 ? [] : [`Skills:\n${lines.join("\n")}`];
}

function byLocation(documents: PromptDocuments): Map<string, Skill> {
  return new Map(readSkills(documents).skills.map((skill) => [skill.location, skill]));
}
