// Collects one file's contribution to a grep result: lines with context, its name, or a count. Pure except for the list that it
// appends to.
import type { GrepMode, SearchHit } from "./job.ts";

/** Whether the search continues with the next line, with the next file, or stops. */
export type Step = "more" | "next file" | "enough";

/** Collects hits up to a maximum; context lines do not count. */
export class HitList {
  readonly lines: SearchHit[] = [];
  readonly #most: number;
  #found = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Whether there are more hits than requested. */
  get truncated(): boolean {
    return this.#found > this.#most;
  }

  /** Counts a hit; false when the list is full. */
  room(): boolean {
    this.#found += 1;
    return !this.truncated;
  }

  /** Adds a hit without line text: a name, or a count. */
  add(shown: string): boolean {
    if (!this.room()) return false;
    this.lines.push({ shown, line: null });
    return true;
  }
}

export interface FileHitsOptions {
  name: string;
  pattern: RegExp;
  mode: GrepMode;
  /** Lines shown before and after a hit. */
  context: number;
  hits: HitList;
}

const shownCharacters = 400;

export class FileHits {
  readonly #options: FileHitsOptions;
  #number = 0;
  #count = 0;
  /** Context lines to show before the next hit. */
  #before: string[] = [];
  /** Number of context lines still to show after the last hit. */
  #owed = 0;
  #lastShown = -1;

  constructor(options: FileHitsOptions) {
    this.#options = options;
  }

  /** Processes the next line, without its line break. */
  line(text: string): Step {
    const { name, pattern, mode, context, hits } = this.#options;
    this.#number += 1;
    if (!pattern.test(text)) {
      this.#besideHit(text);
      return "more";
    }
    this.#count += 1;
    if (mode === "files") return hits.add(name) ? "next file" : "enough";
    if (mode === "count") return "more";
    if (!hits.room()) return "enough";
    const first = this.#number - this.#before.length;
    if (context > 0 && hits.lines.length > 0 && first !== this.#lastShown + 1)
      hits.lines.push({ shown: "--", line: null });
    for (const [index, line] of this.#before.entries()) this.#showBeside(first + index, line);
    hits.lines.push(this.#hit(this.#number, `:${this.#number}: ${shorten(text, pattern)}`));
    this.#before = [];
    this.#owed = context;
    this.#lastShown = this.#number;
    return "more";
  }

  /** Call it after the last line. */
  end(): Step {
    const { name, mode, hits } = this.#options;
    if (mode !== "count" || this.#count === 0) return "more";
    return hits.add(`${name}: ${this.#count}`) ? "more" : "enough";
  }

  #besideHit(text: string): void {
    const { context } = this.#options;
    if (this.#owed > 0) {
      this.#owed -= 1;
      this.#lastShown = this.#number;
      this.#showBeside(this.#number, text);
    } else if (context > 0) {
      this.#before.push(text);
      if (this.#before.length > context) this.#before.shift();
    }
  }

  #showBeside(number: number, text: string): void {
    this.#options.hits.lines.push(this.#hit(number, `-${number}- ${shorten(text)}`));
  }

  #hit(number: number, rest: string): SearchHit {
    const { name } = this.#options;
    return { shown: `${name}${rest}`, line: { path: name, number } };
  }
}

/** Truncates a long line around its first match. */
function shorten(line: string, pattern?: RegExp): string {
  if (line.length <= shownCharacters) return line;
  const at = Math.max(0, (pattern?.exec(line)?.index ?? 0) - 100);
  const part = line.slice(at, at + shownCharacters).toWellFormed();
  return `${at > 0 ? "…" : ""}${part}${at + shownCharacters < line.length ? "…" : ""}`;
}
