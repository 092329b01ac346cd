// What is new since memory was consolidated last, and how much of it goes into one call. Pure.
import { authorAt, linesOf, type LineAuthors, type MemoryProgress, type MemorySource } from "@parley/contracts";

/** Of one line or message; what is longer is found in its place. */
const maxLineChars = 2_000;

/** A note, or a day of a conversation, with what is new in it. */
export interface Candidate extends MemorySource {
  /** How far it is taken in when all of its lines are. */
  whole: MemoryProgress;
  /** When its lines up to one are. */
  upTo: (number: number) => MemoryProgress;
}

export interface NoteState {
  path: string;
  date: string | null;
  version: number;
  text: string;
  authors: LineAuthors;
  /** The text that is taken in already; undefined: nothing of it. */
  before: string | undefined;
  /** Of this very version the last line that is taken in; 0: none. */
  partLine: number;
}

export function noteCandidate({ path, date, version, text, authors, before, partLine }: NoteState): Candidate {
  const lines = newLines(before, text)
    .filter(({ number, text: line }) => number > partLine && line.trim() !== "")
    .filter(({ number }) => authorAt(authors, number - 1) !== "untrusted");
  // Headings say nothing by themselves.
  const said = lines.some(({ text: line }) => !/^#{1,6}\s/.test(line));
  return {
    place: path,
    date,
    lines: said ? lines : [],
    whole: { kind: "note", path, version, toLine: null },
    upTo: (number) => ({ kind: "note", path, version, toLine: number }),
  };
}

/** The lines of a text that did not stand in the one before, wherever they stand now; numbers from 1. */
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

/** Steps of progress that one call may hand back. */
const maxProgress = 1_000;

/**
 * Apart: what holds nothing to be taken in and stands behind nothing of its own place that does; it is over without a call of a
 * model. `candidates` in the order in which they are taken in.
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

/** As much as fits, in the order given; one line at least, so that every call comes further. */
export function pack(candidates: readonly Candidate[], maxChars: number): Material {
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
