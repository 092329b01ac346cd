// Replaces a passage of a text. Pure, and linear in the text's length.
import { eachOccurrence } from "./occurrences.ts";

export type Replacement =
  | { status: "replaced"; text: string; count: number; line: number }
  | { status: "missing" }
  /** `lines`: line numbers of the first occurrences. */
  | { status: "ambiguous"; count: number; lines: number[] }
  /** The new text would have more characters than `maxCharacters`. */
  | { status: "too_large"; characters: number };

/** Limit of the new text: replacing a short passage many times by a long one must not exhaust the memory. */
export const maxCharacters = 64 * 1024 * 1024;
const namedLines = 10;

/**
 * Replaces `oldText`, which must occur exactly once unless `all`. In a text with CRLF line ends, `oldText` may use LF; the text
 * keeps CRLF.
 */
export function replaceText(text: string, oldText: string, newText: string, all: boolean): Replacement {
  const direct = replaceExact(text, oldText, newText, all);
  if (direct.status !== "missing" || !text.includes("\r\n")) return direct;
  return replaceExact(text, toCrLf(oldText), toCrLf(newText), all);
}

function replaceExact(text: string, oldText: string, newText: string, all: boolean): Replacement {
  const pieces: string[] = [];
  const first: number[] = [];
  let count = 0;
  let done = 0;
  // Overlapping occurrences count as ambiguous; with `all`, replacement goes from left to right without overlap.
  eachOccurrence(codeUnits(text), codeUnits(oldText), { apart: all }, (at) => {
    count += 1;
    if (first.length < namedLines) first.push(at);
    if (all || count === 1) {
      pieces.push(text.slice(done, at));
      done = at + oldText.length;
    }
    return true;
  });
  if (count === 0) return { status: "missing" };
  const lines = linesAt(text, first);
  if (count > 1 && !all) return { status: "ambiguous", count, lines };
  const characters = text.length + count * (newText.length - oldText.length);
  if (characters > maxCharacters) return { status: "too_large", characters };
  pieces.push(text.slice(done));
  return { status: "replaced", text: pieces.join(newText), count, line: lines[0] ?? 1 };
}

function codeUnits(text: string): Uint16Array {
  const bytes = Buffer.from(text, "utf16le");
  // Small buffers share memory and need not begin at an even address.
  const copy = new Uint8Array(bytes);
  return new Uint16Array(copy.buffer, 0, copy.length / 2);
}

function toCrLf(text: string): string {
  return text.replaceAll(/\r?\n/g, "\r\n");
}

/** The line numbers, from 1, of these positions, which are in ascending order. */
function linesAt(text: string, positions: readonly number[]): number[] {
  let line = 1;
  let at = text.indexOf("\n");
  return positions.map((position) => {
    for (; at >= 0 && at < position; at = text.indexOf("\n", at + 1)) line += 1;
    return line;
  });
}
