// Extracts the part of a search result that matches the query. Pure.

export interface Snippet {
  text: string;
  /** Line number in the document or message. */
  fromLine: number;
  toLine: number;
}

const cutMark = "…";

/** The lines around the best match for the query, within `maxChars`. `fromLine`: the number of the text's first line. */
export function snippetOf(text: string, fromLine: number, query: string, maxChars: number): Snippet {
  const lines = text.split("\n");
  if (text.length <= maxChars) return { text, fromLine, toLine: fromLine + lines.length - 1 };
  const stems = stemsOf(query);
  const scores = lines.map((line) => scoreOf(line, stems));
  const best = scores.indexOf(Math.max(...scores));
  let first = best;
  let last = best;
  let size = lines[best]?.length ?? 0;
  for (let grown = true; grown;) {
    grown = false;
    for (const next of [last + 1, first - 1]) {
      const line = lines[next];
      if (line === undefined || size + line.length + 1 > maxChars) continue;
      size += line.length + 1;
      first = Math.min(first, next);
      last = Math.max(last, next);
      grown = true;
    }
  }
  const shown = lines.slice(first, last + 1).join("\n");
  return { text: around(shown, stems, maxChars), fromLine: fromLine + first, toLine: fromLine + last };
}

/** Prefixes of words: words with the same stem in PostgreSQL mostly share a prefix. */
function stemsOf(query: string): string[] {
  const words = query.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? [];
  return [...new Set(words.map((word) => word.slice(0, Math.max(4, word.length - 3))))];
}

function scoreOf(line: string, stems: readonly string[]): number {
  const lower = line.toLowerCase();
  return stems.reduce((sum, stem) => sum + (lower.includes(stem) ? stem.length : 0), 0);
}

/** The part of an overlong line around the first matching word. */
function around(text: string, stems: readonly string[], maxChars: number): string {
  if (text.length <= maxChars) return text;
  const lower = text.toLowerCase();
  const places = stems.map((stem) => lower.indexOf(stem)).filter((place) => place >= 0);
  const start = Math.max(0, Math.min(Math.min(...places, text.length) - maxChars / 4, text.length - maxChars));
  const part = text.slice(start, start + maxChars - 2 * cutMark.length).toWellFormed();
  return `${start === 0 ? "" : cutMark}${part}${start + maxChars >= text.length ? "" : cutMark}`;
}
