// Ring buffer for a growing text (the output of a background process): keeps its last characters with their positions.
import { TextDecoder } from "node:util";

export interface RingSlice {
  text: string;
  /** Position of the first character; later than requested when the beginning was dropped. */
  from: number;
  /** Position after the last character. */
  to: number;
}

export class TextRingBuffer {
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

  /** Total characters pushed. */
  get end(): number {
    return this.#end;
  }

  /** Position of the first character that is still stored. */
  get start(): number {
    return this.#end - Math.min(this.#text.length, this.#capacity);
  }

  push(chunk: Uint8Array): void {
    const text = this.#decoder.decode(chunk, { stream: true });
    this.#text += text;
    this.#end += text.length;
    // Truncating at twice the capacity copies each character at most once, however small the chunks are.
    if (this.#text.length > 2 * this.#capacity) this.#text = this.#text.slice(-this.#capacity);
    this.onPush?.();
  }

  /** Returns at most `limit` characters from position `from`. */
  read(from: number, limit: number): RingSlice {
    const first = Math.min(Math.max(from, this.start), this.#end);
    const at = this.#text.length - (this.#end - first);
    const text = this.#text.slice(at, at + limit);
    return { text: text.toWellFormed(), from: first, to: first + text.length };
  }
}
