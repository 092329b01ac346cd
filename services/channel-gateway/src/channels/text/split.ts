// Splits a text with ranges into messages of a platform's length. A split code block becomes two ranges with the same language, so that it
// is closed and reopened. Positions are in UTF-16 units of the whole text: an answer that is partly sent continues at its position.
import type { TextLimits } from "@parley/contracts";
import { maxUtf16Length, messageLength } from "./measure.ts";
import { render, type RangeFormat, type RenderedText } from "./render.ts";
import type { Range, RichText } from "./rich-text.ts";

export type RangeLimits = Omit<TextLimits, "format"> & { format: RangeFormat };

/** A message of an answer, and the position of the next one; null: it is the last one. */
export interface TextPart {
  rendered: RenderedText;
  next: number | null;
}

/**
 * Returns the message that begins at `from`, split at the best boundary: paragraph, line, sentence, word, code point. Null when the rest
 * is empty.
 */
export function partAt(rich: RichText, from: number, limits: RangeLimits): TextPart | null {
  let start = startAfter(rich, from, limits.singleLine);
  while (start < rich.text.length) {
    const to = endOf(rich, start, limits);
    const rendered = renderedSlice(rich, start, to, limits);
    const next = startAfter(rich, to, limits.singleLine);
    // A piece may be only white space: the padding of a table.
    if (rendered.plain !== "") return { rendered, next: next === rich.text.length ? null : next };
    start = next;
  }
  return null;
}

/** Where the next message begins, after blank lines where a message is one line; the end of the text when only white space follows. */
function startAfter({ text }: RichText, from: number, isLine = false): number {
  const rest = text.slice(from);
  if (!/\S/.test(rest)) return text.length;
  return isLine ? from + (/^(?:[^\S\n]*\n)*/.exec(rest)?.[0].length ?? 0) : from;
}

function renderedSlice(rich: RichText, from: number, to: number, limits: RangeLimits): RenderedText {
  const rendered = render(slice(rich, from, to, limits.singleLine), limits.format);
  // A link whose address alone exceeds the limit is sent as its label.
  return messageLength(rendered, limits) <= limits.maxLength
    ? rendered
    : render({ text: rendered.plain, ranges: [] }, limits.format);
}

function endOf(rich: RichText, from: number, limits: RangeLimits): number {
  const { text } = rich;
  const lineEnd = limits.singleLine === true ? lineEndAfter(text, from) : text.length;
  const fits = (to: number): boolean =>
    messageLength(render(slice(rich, from, to, limits.singleLine), limits.format), limits) <= limits.maxLength;
  const most = Math.min(lineEnd, from + maxUtf16Length(limits.maxLength, limits.lengthUnit));
  if (most === lineEnd && fits(lineEnd)) return lineEnd;
  let low = from;
  let high = most;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  // Where not even one character fits with its markup, for example next to the long address of a link, the piece is sent without it.
  const isPair = (text.codePointAt(from) ?? 0) > 0xffff;
  const room = low - from >= (isPair ? 2 : 1) ? low - from : roomWithoutMarkup(text, from, limits);
  return Math.min(lineEnd, cutPoint(rich, from, room));
}

function lineEndAfter(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end === -1 ? text.length : end;
}

function roomWithoutMarkup(text: string, from: number, limits: RangeLimits): number {
  const { maxLength, lengthUnit } = limits;
  let length = 0;
  let end = from;
  for (const character of text.slice(from, from + maxUtf16Length(maxLength, lengthUnit))) {
    // A character may be longer in the channel's format: `&amp;`.
    length += messageLength(render({ text: character, ranges: [] }, limits.format), limits);
    if (length > maxLength && end > from) break;
    end += character.length;
  }
  return end - from;
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

/** `at`, or the position before it when that is inside a surrogate pair; `at` is at least two units after the start of the piece. */
function codePointBoundary(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  const before = text.charCodeAt(at - 1);
  const insidePair = unit >= 0xdc00 && unit <= 0xdfff && before >= 0xd800 && before <= 0xdbff;
  return insidePair ? at - 1 : at;
}

/**
 * The text between two positions, trimmed, with its part of each range. Inside a code block, and where a message is one line, its
 * indentation stays.
 */
function slice({ text, ranges }: RichText, from: number, to: number, isLine = false): RichText {
  const codeAt = (at: number): boolean =>
    ranges.some((range) => range.type === "pre" && range.start <= at && at < range.end);
  let start = from;
  let end = to;
  const isIndentation = (at: number): boolean => text[at] !== "\n" && (isLine || codeAt(at));
  while (start < end && isSpace(text, start) && !isIndentation(start)) start += 1;
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
