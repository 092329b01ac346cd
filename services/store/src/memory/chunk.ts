// Splits a text into chunks for search and citation: about 2,000 characters, cut between paragraphs where possible, with their line
// numbers. Pure.
import { linesOf } from "@parley/contracts";

/** Value of the second seed's code; our measurements found no better one. */
const maxChars = 2_000;
/** Overlap with the previous chunk. */
const overlapChars = 100;
/** Maximum part of a line, so that it fits in a chunk with the overlap. */
const maxPieceChars = maxChars - overlapChars - 2;
/** A heading begins a new chunk if the previous one has at least this size. */
const enoughChars = maxChars / 4;

export interface Chunk {
  text: string;
  /** From 1, inclusive. */
  fromLine: number;
  toLine: number;
}

/** A line, or part of a line that is too long for one chunk. */
interface Piece {
  text: string;
  line: number;
}

/**
 * `kindOf` returns a kind for each line (from 0); lines of different kinds never share a chunk, which keeps untrusted lines apart.
 * Blank lines belong to the preceding text.
 */
export function chunksOf(text: string, kindOf: (line: number) => string = () => ""): Chunk[] {
  const chunks: Chunk[] = [];
  let open: Piece[] = [];
  let kind = "";
  const close = (overlap: boolean) => {
    const chunk = chunkOf(open);
    if (chunk !== undefined) chunks.push(chunk);
    open = overlap && chunk !== undefined ? tailOf(open) : [];
  };
  for (const paragraph of paragraphsOf(text)) {
    const own = kindOf(paragraph.line);
    if (own !== kind) close(false);
    kind = own;
    const size = sizeOf(open);
    const heading = /^#{1,6}\s/.test(paragraph.pieces[0]?.text ?? "");
    if (size > 0 && (size + sizeOf(paragraph.pieces) > maxChars || (heading && size >= enoughChars))) close(!heading);
    for (const piece of paragraph.pieces) {
      if (sizeOf(open) > 0 && sizeOf(open) + piece.text.length > maxChars) close(true);
      open.push(piece);
    }
  }
  close(false);
  return chunks;

  function paragraphsOf(whole: string): { line: number; pieces: Piece[] }[] {
    const paragraphs: { line: number; pieces: Piece[] }[] = [];
    let last: { line: number; pieces: Piece[] } | undefined;
    for (const [line, content] of linesOf(whole).entries()) {
      const pieces = piecesOf(content, line + 1);
      const begins = last === undefined || kindOf(line) !== kindOf(last.line) || /^#{1,6}\s/.test(content);
      if (content.trim() === "") {
        paragraphs.at(-1)?.pieces.push(...pieces);
        last = undefined;
      } else if (last === undefined || begins) {
        last = { line, pieces };
        paragraphs.push(last);
      } else {
        last.pieces.push(...pieces);
      }
    }
    return paragraphs;
  }
}

function piecesOf(content: string, line: number): Piece[] {
  const pieces: Piece[] = [];
  let rest = content;
  while (rest.length > maxPieceChars) {
    const space = rest.lastIndexOf(" ", maxPieceChars - 1);
    let at = space > maxPieceChars / 2 ? space + 1 : maxPieceChars;
    // Do not split a surrogate pair.
    if (/[\uD800-\uDBFF]/.test(rest[at - 1] ?? "")) at -= 1;
    pieces.push({ text: rest.slice(0, at), line });
    rest = rest.slice(at);
  }
  return [...pieces, { text: rest, line }];
}

/** Size including line breaks. */
function sizeOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, piece) => sum + piece.text.length + 1, 0);
}

function chunkOf(pieces: readonly Piece[]): Chunk | undefined {
  const first = pieces.findIndex((piece) => piece.text.trim() !== "");
  const last = pieces.findLastIndex((piece) => piece.text.trim() !== "");
  const shown = pieces.slice(first, last + 1);
  const [head] = shown;
  const end = shown.at(-1);
  if (first < 0 || head === undefined || end === undefined) return undefined;
  return { text: joined(shown), fromLine: head.line, toLine: end.line };
}

/** Joins pieces; parts of one line are joined without a separator. */
function joined(pieces: readonly Piece[]): string {
  return pieces.reduce((text, piece, index) => {
    const before = pieces[index - 1];
    return before === undefined ? piece.text : `${text}${before.line === piece.line ? "" : "\n"}${piece.text}`;
  }, "");
}

/** The last lines that fit in the overlap; for a longer line its end, from a word boundary. */
function tailOf(pieces: readonly Piece[]): Piece[] {
  const tail: Piece[] = [];
  for (const piece of pieces.toReversed()) {
    if (sizeOf(tail) + piece.text.length > overlapChars) break;
    tail.unshift(piece);
  }
  const last = pieces.at(-1);
  if (tail.some((piece) => piece.text.trim() !== "") || last === undefined) return tail;
  const end = last.text.slice(-overlapChars);
  const word = end.slice(end.indexOf(" ") + 1);
  return word.trim() === "" ? [] : [{ text: word.toWellFormed(), line: last.line }];
}
