// Turns ripgrep's events into the hits of a grep result: lines with context, file names, or counts. Pure.
import { z } from "zod";

/** `content`: lines. `files`: file names. `count`: file names with their number of matching lines. */
export type GrepMode = "content" | "files" | "count";

export interface SearchHit {
  /** `path`, `path:line: text`, `path-line- text` for context, `--` between groups, or `path: number`. */
  shown: string;
  /** The line whose text is shown, numbered from 1; null if none. */
  line: { path: string; number: number } | null;
}

interface HitMark {
  lines: number;
  found: number;
}

/** Collects hits up to a maximum; context lines do not count. */
export class HitList {
  readonly lines: SearchHit[] = [];
  readonly #most: number;
  found = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Whether there are more hits than requested. */
  get truncated(): boolean {
    return this.found > this.#most;
  }

  /** Adds a hit; false when the list was full. */
  add(shown: string, line: SearchHit["line"] = null, before: readonly SearchHit[] = []): boolean {
    this.found += 1;
    if (!this.truncated) this.lines.push(...before, { shown, line });
    return !this.truncated;
  }

  /** The present state, for `reset`. */
  mark(): HitMark {
    return { lines: this.lines.length, found: this.found };
  }

  /** Removes what was added after the mark. */
  reset(mark: HitMark): void {
    this.lines.length = mark.lines;
    this.found = mark.found;
  }
}

const Text = z.object({ text: z.string().optional(), bytes: z.string().optional() });
const Line = z.object({
  data: z.object({ lines: Text, line_number: z.number(), absolute_offset: z.number() }),
});
const Event = z.discriminatedUnion("type", [
  z.object({ type: z.literal("begin"), data: z.object({ path: Text }) }),
  z.object({
    type: z.literal("end"),
    data: z.object({ binary_offset: z.number().nullable(), stats: z.object({ matched_lines: z.number() }) }),
  }),
  z.object({ type: z.literal("summary"), data: z.object({ stats: z.object({ searches: z.number() }) }) }),
]);

/** A NUL byte before this offset marks a binary file, which has no lines to show. */
const textBytes = 8_192;
const shownCharacters = 400;
const lineStart = /^\{"type":"(?:match|context)"/;
const matchStart = '{"type":"match"';
const longestStart = '{"type":"context"'.length;
/** What follows in the event of a line are its matches: up to one for each character. Quotes in texts are escaped. */
const submatches = ',"submatches":[';
const matchOffset = '"start":';

export interface GrepHitsOptions {
  mode: GrepMode;
  /** Lines shown before and after a hit. */
  context: number;
  hits: HitList;
  /** The name of a searched path in the result; undefined: it must not be shown. */
  nameOf: (path: Buffer) => string | undefined;
}

export class GrepHits {
  readonly #options: GrepHitsOptions;
  #name: string | undefined;
  /** Before the current file. */
  #mark: HitMark = { lines: 0, found: 0 };
  /** Context lines to show before the next hit. */
  #before: SearchHit[] = [];
  #lastHit = -1;
  #lastShown = -1;
  /** Of the file's last hit, in bytes. */
  #lastOffset = 0;
  #fileTooLong = 0;
  /** Matching lines that are too long to show. */
  tooLong = 0;
  /** Files with a hit after a NUL byte: in line numbers, each NUL byte counts as the end of a line. */
  withNul = 0;
  /** Files searched; undefined until the search has ended. */
  searched: number | undefined;

  constructor(options: GrepHitsOptions) {
    this.#options = options;
  }

  /** Takes the next event, a line of JSON of which the end may be missing; false when there are enough hits. */
  take(record: Buffer): boolean {
    const { mode, hits, nameOf } = this.#options;
    const start = record.toString("latin1", 0, longestStart);
    if (lineStart.test(start)) {
      if (mode === "content") this.#takeLine(record, start.startsWith(matchStart));
      return true;
    }
    const event = Event.parse(JSON.parse(record.toString("utf8")));
    if (event.type === "summary") {
      this.searched = event.data.stats.searches;
    } else if (event.type === "begin") {
      this.#name = nameOf(decode(event.data.path));
      this.#mark = hits.mark();
      this.#before = [];
      this.#lastHit = this.#lastShown = -1;
      this.#lastOffset = this.#fileTooLong = 0;
    } else if (this.#name !== undefined) {
      return this.#end(this.#name, event.data);
    }
    return true;
  }

  #takeLine(record: Buffer, isHit: boolean): void {
    if (this.#name === undefined || this.#options.hits.truncated) return;
    const end = record.indexOf(submatches);
    if (end < 0) {
      this.#fileTooLong += 1;
      return;
    }
    const { data } = Line.parse(JSON.parse(`${record.toString("utf8", 0, end)}}}`));
    this.#line(this.#name, isHit, data, record.subarray(end));
  }

  #end(
    name: string,
    { binary_offset: binary, stats }: { binary_offset: number | null; stats: { matched_lines: number } },
  ) {
    const { mode, hits } = this.#options;
    if (binary !== null && binary < textBytes) {
      hits.reset(this.#mark);
      return true;
    }
    this.tooLong += this.#fileTooLong;
    if (mode === "content") {
      if (binary !== null && binary < this.#lastOffset) this.withNul += 1;
      return !hits.truncated;
    }
    return hits.add(mode === "files" ? name : `${name}: ${stats.matched_lines}`);
  }

  #line(
    name: string,
    isHit: boolean,
    { lines, line_number: number, absolute_offset: offset }: z.infer<typeof Line>["data"],
    matches: Buffer,
  ): void {
    const { context, hits } = this.#options;
    const bytes = decode(lines);
    const text = bytes.toString("utf8").replace(/\r?\n$/, "");
    const line = { path: name, number };
    if (isHit) {
      const first = number - this.#before.length;
      const isApart = context > 0 && hits.lines.length > 0 && first !== this.#lastShown + 1;
      const before = [...(isApart ? [{ shown: "--", line: null }] : []), ...this.#before];
      this.#before = [];
      this.#lastHit = this.#lastShown = number;
      const at = text.length <= shownCharacters ? 0 : bytes.toString("utf8", 0, firstMatch(matches)).length;
      if (hits.add(`${name}:${number}: ${shorten(text, at)}`, line, before)) this.#lastOffset = offset;
      return;
    }
    const contextLine = { shown: `${name}-${number}- ${shorten(text, 0)}`, line };
    if (this.#lastHit >= 0 && number <= this.#lastHit + context) {
      hits.lines.push(contextLine);
      this.#lastShown = number;
    } else this.#before.push(contextLine);
  }
}

/** Where the first match begins, in bytes of the line; 0 when its text is cut off. */
function firstMatch(matches: Buffer): number {
  const at = matches.indexOf(matchOffset);
  return at < 0 ? 0 : Number.parseInt(matches.toString("latin1", at + matchOffset.length, at + 32), 10);
}

/** Text that is not valid UTF-8 arrives in base64. */
function decode({ text, bytes }: z.infer<typeof Text>): Buffer {
  return bytes === undefined ? Buffer.from(text ?? "") : Buffer.from(bytes, "base64");
}

/** Truncates a long line around its first match. */
function shorten(line: string, match: number): string {
  if (line.length <= shownCharacters) return line;
  const at = Math.max(0, match - 100);
  const part = line.slice(at, at + shownCharacters).toWellFormed();
  return `${at > 0 ? "…" : ""}${part}${at + shownCharacters < line.length ? "…" : ""}`;
}
