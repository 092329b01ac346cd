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
}

const Text = z.object({ text: z.string().optional(), bytes: z.string().optional() });
const Line = z.object({
  path: Text,
  lines: Text,
  line_number: z.number(),
  submatches: z.array(z.object({ start: z.number() })).default([]),
});
const Event = z.discriminatedUnion("type", [
  z.object({ type: z.literal("begin"), data: z.object({ path: Text }) }),
  z.object({ type: z.literal("match"), data: Line }),
  z.object({ type: z.literal("context"), data: Line }),
  z.object({
    type: z.literal("end"),
    data: z.object({ binary_offset: z.number().nullable(), stats: z.object({ matched_lines: z.number() }) }),
  }),
  z.object({ type: z.literal("summary"), data: z.object({ stats: z.object({ searches: z.number() }) }) }),
]);

/** A NUL byte before this offset marks a binary file, which has no lines to show. */
const textBytes = 8_192;
const shownCharacters = 400;
const matchStart = Buffer.from('{"type":"match"');
const submatches = ',"submatches":[';

export interface GrepHitsOptions {
  mode: GrepMode;
  /** Lines shown before and after a hit. */
  context: number;
  hits: HitList;
  /** The name of a searched path in the result; undefined: it must not be shown. */
  nameOf: (path: string) => string | undefined;
}

export class GrepHits {
  readonly #options: GrepHitsOptions;
  #name: string | undefined;
  /** Before the current file. */
  #mark = { lines: 0, found: 0 };
  /** Context lines to show before the next hit. */
  #before: SearchHit[] = [];
  #lastHit = -1;
  #lastShown = -1;
  /** Matching lines that are too long to show. */
  tooLong = 0;
  /** Files searched; undefined until the search has ended. */
  searched: number | undefined;

  constructor(options: GrepHitsOptions) {
    this.#options = options;
  }

  /** Takes the next event, a line of JSON that may be cut off; false when there are enough hits. */
  take(record: Buffer): boolean {
    const { mode, hits, nameOf } = this.#options;
    if (mode !== "content" && record.subarray(0, matchStart.length).equals(matchStart)) return true;
    const parsed = parseRecord(record.toString("utf8"));
    if (parsed === undefined) {
      this.tooLong += 1;
      return true;
    }
    const event = Event.parse(parsed);
    if (event.type === "summary") {
      this.searched = event.data.stats.searches;
    } else if (event.type === "begin") {
      this.#name = nameOf(decode(event.data.path).toString("utf8"));
      this.#mark = { lines: hits.lines.length, found: hits.found };
      this.#before = [];
      this.#lastHit = this.#lastShown = -1;
    } else if (this.#name !== undefined) {
      if (event.type === "end") return this.#end(this.#name, event.data);
      if (mode === "content") return this.#line(this.#name, event.type === "match", event.data);
    }
    return true;
  }

  #end(
    name: string,
    { binary_offset: binary, stats }: { binary_offset: number | null; stats: { matched_lines: number } },
  ) {
    const { mode, hits } = this.#options;
    if (binary !== null && binary < textBytes) {
      hits.lines.length = this.#mark.lines;
      hits.found = this.#mark.found;
      return true;
    }
    if (mode === "content") return true;
    return hits.add(mode === "files" ? name : `${name}: ${stats.matched_lines}`);
  }

  #line(name: string, isHit: boolean, { lines, line_number: number, submatches: matches }: z.infer<typeof Line>) {
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
      const at = text.length <= shownCharacters ? 0 : bytes.toString("utf8", 0, matches[0]?.start ?? 0).length;
      return hits.add(`${name}:${number}: ${shorten(text, at)}`, line, before);
    }
    const contextLine = { shown: `${name}-${number}- ${shorten(text, 0)}`, line };
    if (this.#lastHit >= 0 && number <= this.#lastHit + context) {
      hits.lines.push(contextLine);
      this.#lastShown = number;
    } else this.#before.push(contextLine);
    return true;
  }
}

/** Ripgrep lists every match of a line; of a long list, the beginning is missing its end. Undefined when the line itself is too long. */
function parseRecord(record: string): unknown {
  if (record.endsWith("}")) return JSON.parse(record);
  const end = record.lastIndexOf(submatches);
  return end < 0 ? undefined : JSON.parse(`${record.slice(0, end)}}}`);
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
