// Turns a byte stream into one page of numbered lines and buffers no more than the page. It does not depend on files.
import { TextDecoder } from "node:util";

export interface PageRequest {
  /** First line of the page, from 1. */
  offset: number;
  /** Maximum number of lines on a page. */
  limit: number;
  /** Maximum number of characters on a page. */
  maxCharacters: number;
}

export interface Page {
  /** Each as `<number>\t<line>`. */
  lines: string[];
  /** Lines before the page: fewer than requested when the file is shorter. */
  skipped: number;
  /** The first line after the page; undefined at the end of the file. */
  next: number | undefined;
  /** Numbers of lines that were cut because they alone are longer than a page. */
  cutLines: number[];
}

const newline = 0x0a;

/** Reads until the page is full or the bytes end. */
export async function readPage(chunks: AsyncIterable<Uint8Array>, request: PageRequest): Promise<Page> {
  const page = new PageBuilder(request);
  let line = 1;
  /** Bytes of the current line, at most one page of them. */
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  const keep = (piece: Uint8Array) => {
    if (line < request.offset || pendingBytes > request.maxCharacters * 4) return;
    pending.push(Uint8Array.from(piece));
    pendingBytes += piece.length;
  };
  let open = false;
  for await (const chunk of chunks) {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(newline, start);
      if (end < 0) break;
      keep(chunk.subarray(start, end));
      if (line >= request.offset && !page.add(line, pending)) return page.build(line);
      line += 1;
      pending = [];
      pendingBytes = 0;
      start = end + 1;
      open = false;
    }
    if (start < chunk.length) {
      if (page.full) return page.build(line);
      keep(chunk.subarray(start));
      open = true;
    }
  }
  if (open) {
    if (line >= request.offset && !page.add(line, pending)) return page.build(line);
    line += 1;
  }
  return page.build(undefined, line - 1);
}

class PageBuilder {
  readonly #request: PageRequest;
  readonly #lines: string[] = [];
  readonly #cut: number[] = [];
  #characters = 0;

  constructor(request: PageRequest) {
    this.#request = request;
  }

  get full(): boolean {
    return this.#lines.length >= this.#request.limit || this.#characters >= this.#request.maxCharacters;
  }

  /** False when the line does not fit. A line longer than a page is cut when it is the first of its page. */
  add(number: number, bytes: Uint8Array[]): boolean {
    if (this.full) return false;
    let text = new TextDecoder("utf-8", { ignoreBOM: false }).decode(Buffer.concat(bytes)).replace(/\r$/, "");
    const room = this.#request.maxCharacters - this.#characters;
    if (text.length + 9 > room) {
      if (this.#lines.length > 0) return false;
      text = text.slice(0, room - 9).toWellFormed();
      this.#cut.push(number);
    }
    const numbered = `${String(number).padStart(6)}\t${text}`;
    this.#lines.push(numbered);
    this.#characters += numbered.length + 1;
    return true;
  }

  build(next: number | undefined, total = 0): Page {
    return {
      lines: this.#lines,
      skipped: next === undefined ? Math.min(total, this.#request.offset - 1) : this.#request.offset - 1,
      next,
      cutLines: this.#cut,
    };
  }
}
