// Detects the media type from the content alone, never from the sender's declaration.
import { isUtf8 } from "node:buffer";

/** The type by the content's first bytes; undefined without a known signature. */
export async function signatureType(beginning: Uint8Array): Promise<string | undefined> {
  // Loaded with the first content: a store starts faster without its 40 modules.
  const { fileTypeFromBuffer } = await import("file-type");
  const found = await fileTypeFromBuffer(beginning).catch(() => undefined);
  // Parameters such as codecs would disturb comparisons of types.
  return found?.mime.split(";")[0]?.trim();
}

/** Whether content that comes in chunks is text: well-formed UTF-8 without control characters other than white space. */
export class TextCheck {
  #rest: Uint8Array = Buffer.alloc(0);
  #text = true;

  add(chunk: Uint8Array): void {
    if (!this.#text) return;
    const joined = Buffer.concat([this.#rest, chunk]);
    const end = lastCharacterStart(joined);
    const whole = joined.subarray(0, end);
    this.#rest = joined.subarray(end);
    if (!isUtf8(whole) || hasControls(whole)) this.#text = false;
  }

  /** Valid after the last chunk. */
  get isText(): boolean {
    return this.#text && isUtf8(this.#rest) && !hasControls(this.#rest);
  }
}

/** Start of the last, possibly incomplete, character. */
function lastCharacterStart(bytes: Uint8Array): number {
  const longest = 4;
  for (let at = bytes.length - 1; at >= Math.max(0, bytes.length - longest); at--) {
    // Not a continuation byte.
    if (((bytes[at] ?? 0) & 0xc0) !== 0x80) return at;
  }
  return bytes.length;
}

function hasControls(bytes: Uint8Array): boolean {
  // Tab, line feed, form feed, carriage return and escape (coloured logs) occur in text.
  return bytes.some((byte) => (byte < 0x20 && ![0x09, 0x0a, 0x0c, 0x0d, 0x1b].includes(byte)) || byte === 0x7f);
}
