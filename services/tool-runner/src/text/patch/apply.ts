// Applies hunks to a text. Pure, and linear in the text per hunk. The lines of a hunk must match exactly or except for white
// space; there is no other fuzzy matching.
import { eachOccurrence } from "../occurrences.ts";
import type { PatchAnswer } from "../job.ts";
import { decodeText } from "../file-kind.ts";
import { FileLines, type Likeness } from "./lines.ts";
import { PatchError, type Hunk } from "./parse.ts";

/** How lines may differ, strictest first. */
const likenesses: readonly Likeness[] = ["same", "end", "spacing"];
const namedPlaces = 10;

/** Like `applyHunks`, for the bytes of a file. Never throws PatchError. */
export function patchContent(job: { content: Uint8Array; hunks: readonly Hunk[]; name: string }): PatchAnswer {
  const text = decodeText(Buffer.from(job.content.buffer, job.content.byteOffset, job.content.byteLength));
  if (text === undefined) return { status: "refused", message: `"${job.name}" is not a UTF-8 text file.` };
  try {
    return { status: "patched", content: new TextEncoder().encode(applyHunks(text, job.hunks, job.name)) };
  } catch (error) {
    if (error instanceof PatchError) return { status: "refused", message: error.message };
    throw error;
  }
}

/** Throws PatchError, which names the hunk and shows the lines that were not found. Keeps the text's line ends. */
export function applyHunks(text: string, hunks: readonly Hunk[], name: string): string {
  const newline = text.includes("\r\n") ? "\r\n" : "\n";
  const ends = text === "" || text.endsWith("\n");
  const lines = new FileLines(text, hunks);
  const result: string[] = [];
  const copy = (from: number, to: number) => (to > from ? result.push(lines.between(from, to)) : 0);
  let done = 0;
  for (const [index, hunk] of hunks.entries()) {
    const where = `hunk ${index + 1} of ${hunks.length} (line ${hunk.at} of the patch)`;
    const at = findHunk(lines, hunk, done, `"${name}", ${where}`);
    copy(done, at);
    done = at;
    for (const { kind, text: line } of hunk.lines) {
      if (kind === "add") {
        result.push(newline === "\r\n" ? `${line}\r` : line);
        continue;
      }
      // A kept line is the file's own line, with its white space.
      if (kind === "keep") copy(done, done + 1);
      done += 1;
    }
  }
  copy(done, lines.count);
  // A last line without a newline may now be followed by an added line.
  return result.length === 0 ? "" : result.join("\n") + (ends ? "\n" : "");
}

/** Index of the first line of the hunk. */
function findHunk(lines: FileLines, hunk: Hunk, from: number, where: string): number {
  const start = hunk.below === "" ? from : findHeader(lines, hunk.below, from, where);
  const wanted = hunk.lines.filter(({ kind }) => kind !== "add").map(({ text }) => text);
  if (wanted.length === 0) {
    if (hunk.atEnd || lines.count === 0) return lines.count;
    if (hunk.below !== "") return start;
    throw new PatchError(`${where}: it adds lines without context. Include the lines around the change.`);
  }
  // A hunk that ends with the file has only one possible position.
  const first = hunk.atEnd ? Math.max(start, lines.count - wanted.length) : start;
  for (const likeness of likenesses) {
    const places: number[] = [];
    let count = 0;
    eachOccurrence(lines.ids(likeness), lines.idsOf(wanted, likeness), { from: first }, (at) => {
      count += 1;
      if (places.length < namedPlaces) places.push(at);
      return hunk.below === "";
    });
    const [place] = places;
    if (place === undefined) continue;
    if (count === 1) return place;
    const numbers = places.map((at) => at + 1);
    throw new PatchError(
      `${where}: its lines occur at ${count} places (lines ${numbers.join(", ")}). Include more context lines, or a @@ line from above the change.`,
    );
  }
  const shown = wanted.slice(0, 8).map((line) => `  ${line}`);
  const more = wanted.length > 8 ? [`  … ${wanted.length - 8} more`] : [];
  const after = start === 0 ? "in the file" : `after line ${start}`;
  throw new PatchError(
    [`${where}: these lines were not found ${after}${hunk.atEnd ? ", at its end" : ""}:`, ...shown, ...more].join("\n"),
  );
}

/** Index after the hunk's @@ line. */
function findHeader(lines: FileLines, below: string, from: number, where: string): number {
  for (const likeness of ["trimmed", "spacing"] as const) {
    const at = lines.ids(likeness).indexOf(lines.idsOf([below], likeness)[0] ?? 0, from);
    if (at >= 0) return at + 1;
  }
  for (let at = from; at < lines.count; at++) {
    if (
      lines
        .between(at, at + 1)
        .trim()
        .startsWith(below)
    )
      return at + 1;
  }
  throw new PatchError(`${where}: the line "${below.slice(0, 200)}" was not found after line ${from}.`);
}
