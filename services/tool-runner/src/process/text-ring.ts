// The last so many characters of a text that goes on, each with its place in the whole: what a background process has printed.
import { TextDecoder } from "node:util";

export interface Excerpt {
  text: string;
  /** Place of the text's first character in the whole; later than asked for where the beginning is gone. */
  from: number;
  /** Place after its last character. */
  to: number;
}

export class TextRing {
  readonly #capacity: number;
  readonly #decoder = new TextDecoder();
  #text = "";
  #end = 0;
  /** Called after each push. */
  onPush: (() => void) | undefined;

  /** Keeps `capacity` characters. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Characters pushed so far. */
  get end(): number {
    return this.#end;
  }

  /** Place of the first character that is still kept. */
  get start(): number {
    return this.#end - Math.min(this.#text.length, this.#capacity);
  }

  push(chunk: Uint8Array): void {
    const text = this.#decoder.decode(chunk, { stream: true });
    this.#text += text;
    this.#end += text.length;
    // Cutting at twice the size costs each character one copy, however small the chunks are.
    if (this.#text.length > 2 * this.#capacity) this.#text = this.#text.slice(-this.#capacity);
    this.onPush?.();
  }

  /** At most `limit` characters from place `from`. */
  read(from: number, limit: number): Excerpt {
    const first = Math.min(Math.max(from, this.start), this.#end);
    const at = this.#text.length - (this.#end - first);
    const text = this.#text.slice(at, at + limit);
    return { text: text.toWellFormed(), from: first, to: first + text.length };
  }
}
