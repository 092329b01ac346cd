// The lines of a file, compared as numbers: equal lines have the same number. Pure. Only lines that occur in the patch get
// a number, so that a file of millions of lines costs a few bytes per line.
import type { Hunk } from "./parse.ts";

/** How lines may differ: not at all, at their end, at both ends, or in all white space. */
export type Likeness = "same" | "end" | "trimmed" | "spacing";

const likenessKeys: Readonly<Record<Likeness, (line: string) => string>> = {
  same: (line) => line,
  end: (line) => line.trimEnd(),
  trimmed: (line) => line.trim(),
  spacing: (line) => line.trim().replaceAll(/\s+/g, " "),
};

/** The number of all lines that do not occur in the patch. */
const other = 0;

export class FileLines {
  readonly count: number;
  readonly #text: string;
  /** Start of each line; the last entry is the start of a hypothetical next line. */
  readonly #starts: Uint32Array;
  readonly #sought: readonly string[];
  readonly #levels = new Map<Likeness, { numbers: ReadonlyMap<string, number>; ids: Int32Array }>();

  constructor(text: string, hunks: readonly Hunk[]) {
    this.#text = text;
    this.#starts = startsOf(text);
    this.count = this.#starts.length - 1;
    this.#sought = hunks.flatMap(({ below, lines }) => [
      ...(below === "" ? [] : [below]),
      ...lines.flatMap(({ kind, text: line }) => (kind === "add" ? [] : [line])),
    ]);
  }

  /** The file's lines from one index up to another (exclusive), without the last newline. */
  between(from: number, to: number): string {
    return this.#text.slice(this.#starts[from], (this.#starts[to] ?? 0) - 1);
  }

  /** The number of each line of the file. */
  ids(likeness: Likeness): Int32Array {
    return this.#level(likeness).ids;
  }

  /** The numbers of a hunk's lines. */
  idsOf(lines: readonly string[], likeness: Likeness): Int32Array {
    const { numbers } = this.#level(likeness);
    const key = likenessKeys[likeness];
    return Int32Array.from(lines, (line) => numbers.get(key(line)) ?? other);
  }

  #level(likeness: Likeness) {
    const known = this.#levels.get(likeness);
    if (known !== undefined) return known;
    const key = likenessKeys[likeness];
    const numbers = new Map<string, number>();
    for (const line of this.#sought) {
      const each = key(line);
      if (!numbers.has(each)) numbers.set(each, numbers.size + 1);
    }
    const ids = new Int32Array(this.count);
    for (let at = 0; at < this.count; at++) {
      const line = this.between(at, at + 1);
      ids[at] = numbers.get(key(line.endsWith("\r") ? line.slice(0, -1) : line)) ?? other;
    }
    const level = { numbers, ids };
    this.#levels.set(likeness, level);
    return level;
  }
}

function startsOf(text: string): Uint32Array {
  if (text === "") return Uint32Array.of(0);
  let count = text.endsWith("\n") ? 0 : 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  const starts = new Uint32Array(count + 1);
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts[line++] = at + 1;
  // Treats a missing final newline as present.
  if (!text.endsWith("\n")) starts[count] = text.length + 1;
  return starts;
}
