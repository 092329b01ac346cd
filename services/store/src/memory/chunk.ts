// A text in pieces that can be found and cited: about 2,000 characters, cut between paragraphs where that is possible, with the
// lines they stand in. Pure.
import { linesOf } from "@parley/contracts";

/** Source: the second seed's code, which our own measurements have not bettered. */
const maxChars = 2_000;
/** What a piece repeats of the one before it. */
const overlapChars = 100;
/** Of a line: with what is repeated before it, it fits. */
const maxPieceChars = maxChars - overlapChars - 2;
/** A heading begins a new piece where the one before has at least so much. */
const enoughChars = maxChars / 4;

export interface Chunk {
  text: string;
  /** From 1, inclusive. */
  fromLine: number;
  toLine: number;
}

/** Part of a line that is too long for one piece, or a whole one. */
interface Piece {
  text: string;
  line: number;
}

/**
 * `kindOf` tells for each line (from 0) what it may not share a piece with another kind of: what outsiders wrote stays apart.
 * Empty lines belong to what stands before them.
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
    // Half a character is none.
    if (/[\uD800-\uDBFF]/.test(rest[at - 1] ?? "")) at -= 1;
    pieces.push({ text: rest.slice(0, at), line });
    rest = rest.slice(at);
  }
  return [...pieces, { text: rest, line }];
}

/** Line breaks included. */
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

/** Parts of one line are read without anything between them. */
function joined(pieces: readonly Piece[]): string {
  return pieces.reduce((text, piece, index) => {
    const before = pieces[index - 1];
    return before === undefined ? piece.text : `${text}${before.line === piece.line ? "" : "\n"}${piece.text}`;
  }, "");
}

/** The last lines, as many as fit the overlap; of a longer one its end, from a word on. */
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
