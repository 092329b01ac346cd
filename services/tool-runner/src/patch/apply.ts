// What hunks make of a text. Pure. A hunk must find its lines exactly, or with other white space; nothing else is guessed.
import { PatchError, type Hunk } from "./parse.ts";

/** How lines may differ, the strictest first. */
const likenesses: readonly ((line: string) => string)[] = [
  (line) => line,
  (line) => line.trimEnd(),
  (line) => line.trim().replaceAll(/\s+/g, " "),
];

/** Throws PatchError, which names the hunk and shows what was looked for. Line ends are the text's. */
export function applyHunks(text: string, hunks: readonly Hunk[], name: string): string {
  const newline = text.includes("\r\n") ? "\r\n" : "\n";
  const ends = text === "" || text.endsWith("\n");
  const lines = text === "" ? [] : text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const bare = lines.map((line) => line.replace(/\r$/, ""));
  const result: string[] = [];
  let done = 0;
  for (const [index, hunk] of hunks.entries()) {
    const where = `hunk ${index + 1} of ${hunks.length} (line ${hunk.at} of the patch)`;
    const at = findHunk(bare, hunk, done, `"${name}", ${where}`);
    result.push(...lines.slice(done, at));
    done = at;
    for (const { kind, text: line } of hunk.lines) {
      if (kind === "add") {
        result.push(newline === "\r\n" ? `${line}\r` : line);
        continue;
      }
      // What stays is the file's own line, with its own white space.
      if (kind === "keep") result.push(lines[done] ?? "");
      done += 1;
    }
  }
  result.push(...lines.slice(done));
  // The last line of a file without a newline at its end may have got a neighbour.
  return result.length === 0 ? "" : result.join("\n") + (ends ? "\n" : "");
}

/** Index of the first line of the hunk. */
function findHunk(lines: readonly string[], hunk: Hunk, from: number, where: string): number {
  const start = hunk.below === "" ? from : findHeader(lines, hunk.below, from, where);
  const wanted = hunk.lines.filter(({ kind }) => kind !== "add").map(({ text }) => text);
  if (wanted.length === 0) {
    if (hunk.atEnd || lines.length === 0) return lines.length;
    if (hunk.below !== "") return start;
    throw new PatchError(`${where}: it only adds lines and does not say where. Add lines that stand around the place.`);
  }
  for (const likeness of likenesses) {
    const sought = wanted.map(likeness);
    const places: number[] = [];
    for (let at = start; at + sought.length <= lines.length; at++) {
      if (hunk.atEnd && at + sought.length !== lines.length) continue;
      if (sought.every((line, offset) => likeness(lines[at + offset] ?? "") === line)) places.push(at);
    }
    const [first, second] = places;
    if (first === undefined) continue;
    if (second === undefined || hunk.below !== "") return first;
    const numbers = places.slice(0, 10).map((at) => at + 1);
    throw new PatchError(
      `${where}: its lines stand at ${places.length} places (lines ${numbers.join(", ")}). Add more lines around it, or a @@ line that stands above the place.`,
    );
  }
  const shown = wanted.slice(0, 8).map((line) => `  ${line}`);
  const more = wanted.length > 8 ? [`  … ${wanted.length - 8} more`] : [];
  const after = start === 0 ? "in the file" : `after line ${start}`;
  throw new PatchError(
    [`${where}: these lines do not stand ${after}${hunk.atEnd ? ", at its end" : ""}:`, ...shown, ...more].join("\n"),
  );
}

/** Index after the line that the hunk stands below. */
function findHeader(lines: readonly string[], below: string, from: number, where: string): number {
  for (const likeness of likenesses.slice(1)) {
    const sought = likeness(below);
    const at = lines.findIndex((line, index) => index >= from && likeness(line.trimStart()) === sought);
    if (at >= 0) return at + 1;
  }
  const begins = lines.findIndex((line, index) => index >= from && line.trim().startsWith(below));
  if (begins >= 0) return begins + 1;
  throw new PatchError(`${where}: no line "${below.slice(0, 200)}" stands after line ${from}.`);
}
