// Keeps the beginning and the end of a command's output, and counts the bytes between. Memory stays constant.
// It does not know where the rest is stored.

export class OutputWindow {
  readonly #headBytes: number;
  readonly #tailBytes: number;
  readonly #head: Buffer[] = [];
  #headLength = 0;
  #tail: Buffer[] = [];
  #tailLength = 0;
  #total = 0;

  /** Keeps `shownBytes` in total, half at each end. */
  constructor(shownBytes: number) {
    this.#headBytes = Math.ceil(shownBytes / 2);
    this.#tailBytes = Math.floor(shownBytes / 2);
  }

  get totalBytes(): number {
    return this.#total;
  }

  push(chunk: Buffer): void {
    this.#total += chunk.length;
    const room = this.#headBytes - this.#headLength;
    if (room > 0) {
      this.#head.push(Buffer.from(chunk.subarray(0, room)));
      this.#headLength += Math.min(room, chunk.length);
    }
    const rest = chunk.subarray(Math.max(0, room));
    if (rest.length === 0) return;
    this.#tail.push(Buffer.from(rest.subarray(-this.#tailBytes)));
    this.#tailLength += Math.min(rest.length, this.#tailBytes);
    while (this.#tailLength - (this.#tail[0]?.length ?? 0) >= this.#tailBytes) {
      this.#tailLength -= this.#tail.shift()?.length ?? 0;
    }
  }

  /** Everything pushed so far; valid only while nothing is missing. */
  whole(): Buffer {
    return Buffer.concat([...this.#head, ...this.#tail]);
  }

  /** Both ends as text; `missingBytes` were between them. Characters cut by the window are dropped. */
  ends(): { head: string; tail: string; missingBytes: number } {
    if (this.#total <= this.#headBytes + this.#tailBytes) {
      return { head: this.whole().toString("utf8"), tail: "", missingBytes: 0 };
    }
    const head = withoutCutEnd(Buffer.concat(this.#head));
    const tail = withoutCutStart(Buffer.concat(this.#tail).subarray(-this.#tailBytes));
    return {
      head: head.toString("utf8"),
      tail: tail.toString("utf8"),
      missingBytes: this.#total - head.length - tail.length,
    };
  }
}

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;

function withoutCutStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && isContinuation(bytes[start])) start += 1;
  return bytes.subarray(start);
}

function withoutCutEnd(bytes: Buffer): Buffer {
  let lead = bytes.length - 1;
  while (lead > bytes.length - 4 && isContinuation(bytes[lead])) lead -= 1;
  const byte = bytes[lead] ?? 0;
  const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
  return lead + length > bytes.length ? bytes.subarray(0, lead) : bytes;
}
