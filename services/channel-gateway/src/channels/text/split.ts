// Splits a text with ranges into messages of a platform's length. Lengths are in UTF-16 units; independent of markup. A split code block
// becomes two ranges with the same language, so that it is closed and reopened.
import type { Range, RichText } from "./rich-text.ts";

/** Returns pieces of at most `limit` UTF-16 units, split at the best available boundary: paragraph, line, sentence, word, code point. */
export function splitRichText(rich: RichText, limit: number): RichText[] {
  const pieces: RichText[] = [];
  let from = 0;
  while (from < rich.text.length) {
    const rest = rich.text.length - from;
    const to = rest <= limit ? rich.text.length : cutPoint(rich, from, limit);
    const piece = slice(rich, from, to);
    if (piece.text !== "") pieces.push(piece);
    from = to;
  }
  return pieces;
}

/** Returns the end of the piece that begins at `from`: after the white space of the best boundary that leaves the piece long enough. */
function cutPoint({ text, ranges }: RichText, from: number, limit: number): number {
  const end = from + limit;
  const window = text.slice(from, end + 1);
  const inCode = (at: number): Range | undefined =>
    ranges.find((range) => range.type === "pre" && range.start < at && at < range.end);
  const last = (boundary: RegExp, atLeast: number, codeToo: boolean): number | null => {
    let best: number | null = null;
    for (const match of window.matchAll(boundary)) {
      const at = from + match.index + match[0].length;
      if (at - from < atLeast) continue;
      // White space before the cut is dropped, so it does not count.
      if (from + match.index + match[0].trimEnd().length > end) break;
      if (codeToo || inCode(at) === undefined) best = at;
    }
    return best;
  };
  return (
    last(/\n{2,}/g, limit / 2, false) ??
    last(/\n/g, limit / 2, true) ??
    last(/[.!?…:;。！？]["'”’)\]]*\s/gu, limit / 2, false) ??
    last(/\s/g, limit / 4, true) ??
    codePointBoundary(text, end)
  );
}

function codePointBoundary(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  const before = text.charCodeAt(at - 1);
  const insidePair = unit >= 0xdc00 && unit <= 0xdfff && before >= 0xd800 && before <= 0xdbff;
  return insidePair ? at - 1 : at;
}

/** The text between two positions, trimmed (inside a code block only of line breaks), with its part of each range. */
function slice({ text, ranges }: RichText, from: number, to: number): RichText {
  const codeAt = (at: number): boolean =>
    ranges.some((range) => range.type === "pre" && range.start <= at && at < range.end);
  let start = from;
  let end = to;
  while (start < end && isSpace(text, start) && !(codeAt(start) && text[start] !== "\n")) start += 1;
  while (end > start && isSpace(text, end - 1)) end -= 1;
  return {
    text: text.slice(start, end),
    ranges: ranges
      .map((range) => ({
        ...range,
        start: Math.max(range.start, start) - start,
        end: Math.min(range.end, end) - start,
      }))
      .filter((range) => range.end > range.start),
  };
}

function isSpace(text: string, at: number): boolean {
  return /\s/.test(text.charAt(at));
}
