// Selects new material since the last consolidation for one call. Pure.
import { authorAt, linesOf, type LineAuthors, type MemoryProgress, type MemorySource } from "@parley/contracts";

/** Maximum characters of one line or message; a longer one is truncated. */
const maxLineChars = 2_000;

/** The new lines of a note or of one day of a conversation. */
export interface Candidate extends MemorySource {
  /** The progress when all lines are consolidated. */
  whole: MemoryProgress;
  /** The progress when the lines up to a number are consolidated. */
  upTo: (number: number) => MemoryProgress;
}

export interface NoteState {
  path: string;
  date: string | null;
  version: number;
  text: string;
  authors: LineAuthors;
  /** The consolidated text; undefined: none. */
  before: string | undefined;
  /** The last consolidated line of this version; 0: none. */
  partLine: number;
}

export function noteCandidate({ path, date, version, text, authors, before, partLine }: NoteState): Candidate {
  const lines = newLines(before, text)
    .filter(({ number, text: line }) => number > partLine && line.trim() !== "")
    .filter(({ number }) => authorAt(authors, number - 1) !== "untrusted");
  // Headings alone are not material.
  const hasText = lines.some(({ text: line }) => !/^#{1,6}\s/.test(line));
  return {
    place: path,
    date,
    lines: hasText ? lines : [],
    whole: { kind: "note", path, version, toLine: null },
    upTo: (number) => ({ kind: "note", path, version, toLine: number }),
  };
}

/** The lines of a text that the earlier text does not contain, at any position; numbers from 1. */
function newLines(before: string | undefined, text: string): { number: number; text: string }[] {
  const known = new Map<string, number>();
  for (const line of before === undefined ? [] : linesOf(before)) known.set(line, (known.get(line) ?? 0) + 1);
  return linesOf(text).flatMap((line, index) => {
    const left = known.get(line) ?? 0;
    if (left > 0) known.set(line, left - 1);
    return left > 0 ? [] : [{ number: index + 1, text: line }];
  });
}

interface Material {
  sources: MemorySource[];
  progress: MemoryProgress[];
}

/** Maximum progress entries of one call. */
const maxProgress = 1_000;

/**
 * Separates candidates without relevant lines that follow no open candidate of the same place: they are done without a model call.
 * `candidates` are in consolidation order.
 */
export function withoutEmpty(candidates: readonly Candidate[]): { full: Candidate[]; over: MemoryProgress[] } {
  const full: Candidate[] = [];
  const over: MemoryProgress[] = [];
  const begun = new Set<string>();
  for (const candidate of candidates) {
    if (candidate.lines.length === 0 && !begun.has(candidate.place)) {
      over.push(candidate.whole);
      continue;
    }
    begun.add(candidate.place);
    full.push(candidate);
  }
  return { full, over };
}

/** As much as fits, in the given order; at least one line, so that every call makes progress. */
export function packInput(candidates: readonly Candidate[], maxChars: number): Material {
  const sources: MemorySource[] = [];
  const progress: MemoryProgress[] = [];
  let left = maxChars;
  for (const { place, date, lines, whole, upTo } of candidates) {
    if (progress.length >= maxProgress) break;
    const taken: MemorySource["lines"] = [];
    for (const { number, text } of lines) {
      const line = clipped(text);
      if (line.length > left && sources.length + taken.length > 0) break;
      left -= line.length;
      taken.push({ number, text: line });
    }
    const last = taken.at(-1);
    if (last !== undefined) sources.push({ place, date, lines: taken });
    if (taken.length === lines.length) {
      progress.push(whole);
      continue;
    }
    if (last !== undefined) progress.push(upTo(last.number));
    break;
  }
  return { sources, progress };
}

function clipped(text: string): string {
  const line = text.replaceAll("\0", " ").trim();
  return (line.length <= maxLineChars ? line : `${line.slice(0, maxLineChars - 1)}…`).toWellFormed();
}
