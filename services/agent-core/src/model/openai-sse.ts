// Server-sent events out of bytes, however the network cut them; pure. Comments are skipped, and an `error:` field, which older
// llama.cpp servers send in place of an event, is read as an event of that name.

export interface SseEvent {
  /** Empty where the server gives none. */
  name: string;
  data: string;
}

export class SseParser {
  readonly #decoder = new TextDecoder();
  /** The beginning of a line whose end has not come yet. */
  #rest = "";
  #name = "";
  #data: string[] = [];

  /** The events that these bytes complete. */
  push(bytes: Uint8Array): SseEvent[] {
    return this.#read(this.#decoder.decode(bytes, { stream: true }));
  }

  /** What is left when the stream has ended: an event without its blank line, possibly cut. */
  end(): SseEvent[] {
    return this.#read(`${this.#decoder.decode()}\n\n`);
  }

  #read(text: string): SseEvent[] {
    // A `\r` at the very end may be half of a `\r\n`.
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.#readLine(line));
  }

  #readLine(line: string): SseEvent[] {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#name = value;
    if (field === "error") this.#name = "error";
    if (field === "data" || field === "error") this.#data.push(value);
    return [];
  }

  #dispatch(): SseEvent[] {
    const event = { name: this.#name, data: this.#data.join("\n") };
    const empty = this.#data.length === 0;
    this.#name = "";
    this.#data = [];
    return empty ? [] : [event];
  }
}
